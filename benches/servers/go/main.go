// A line echo server on Go's net package: a goroutine for each connection.
package main

import (
	"bufio"
	"log"
	"net"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go echo(conn)
	}
}

func echo(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewReaderSize(conn, 64<<10+1)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		if _, err := conn.Write(line); err != nil {
			return
		}
	}
}
