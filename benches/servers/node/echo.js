// A line echo server on Node's net module: one thread.
"use strict";
const net = require("node:net");

const [host, port] = process.argv[2].split(":");
const server = net.createServer({ noDelay: true }, (socket) => {
  let rest = Buffer.alloc(0);
  socket.on("error", () => socket.destroy());
  socket.on("data", (data) => {
    const all = rest.length > 0 ? Buffer.concat([rest, data]) : data;
    const end = all.lastIndexOf(10) + 1;
    rest = all.subarray(end);
    if (end > 0) socket.write(all.subarray(0, end));
  });
});
server.listen({ host, port: Number(port), backlog: 4096 });
