import { once } from "node:events";
import { createServer } from "node:net";
import t from "tap";
import { freePort } from "./free-port.ts";

t.test("freePort() resolves with a port that a server can listen on", async (t) => {
  const port = await freePort();
  const server = createServer().listen(port, "127.0.0.1");
  t.teardown(() => server.close());
  await once(server, "listening");
  t.match(server.address(), { port });
});
