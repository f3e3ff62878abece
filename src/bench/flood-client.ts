/**
 * A client that keeps a number of requests in flight over several connections until it is killed, whatever the server
 * responds:
 *   node src/bench/flood-client.ts SERVER TOKEN METHOD PATH COUNT
 * A path with `{i}` gets a number. Prints `ready` once requests are in flight.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { Connection } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";

const STREAMS_PER_CONNECTION = 100;

const [server = "", token = "", method = "GET", path = "", count = "1000"] = process.argv.slice(2);
const connections = Array.from(
  { length: Math.ceil(Number(count) / STREAMS_PER_CONNECTION) },
  () => new Connection({ server, token }),
);
let sent = 0;

async function run(connection: Connection): Promise<never> {
  for (;;) {
    const index = sent++;
    const body = method === "POST" ? configMap.create(`flood-${process.pid}-${index}`) : undefined;
    const target = path === "" ? collectionOf(configMap) : path;
    // A stream that the server refuses is sent again, in the next turn of the event loop.
    await connection.request(method, target, body, { ignoreBody: true }).catch(() => nextTurn());
    if (sent === Number(count) + 1) process.stdout.write("ready\n");
  }
}

await Promise.all(Array.from({ length: Number(count) }, (_, index) => run(connections[index % connections.length]!)));
