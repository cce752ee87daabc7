"""A line echo server on asyncio: a protocol object for each connection, all on one thread."""

import asyncio
import sys


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.rest = b""

    def data_received(self, data):
        data = self.rest + data
        end = data.rfind(b"\n") + 1
        self.rest = data[end:]
        if end:
            self.transport.write(data[:end])


async def main(address):
    host, port = address.rsplit(":", 1)
    server = await asyncio.get_running_loop().create_server(Echo, host, int(port), backlog=4096)
    await server.serve_forever()


asyncio.run(main(sys.argv[1]))
