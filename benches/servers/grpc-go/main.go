// echopb.Echo on grpc-go, without generated code: a StringValue has the only field of EchoResponse, and the first of
// EchoRequest, so that its bytes are the same. The second, response_bytes, is not looked at.
package main

import (
	"context"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type echoServer interface{}

var echo = grpc.ServiceDesc{
	ServiceName: "echopb.Echo",
	HandlerType: (*echoServer)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Echo",
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			message := new(wrapperspb.StringValue)
			return message, decode(message)
		},
	}},
}

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	server.RegisterService(&echo, nil)
	log.Fatal(server.Serve(listener))
}
