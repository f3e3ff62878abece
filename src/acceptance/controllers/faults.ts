/** Faults between controllers and the API server, and of the world around them. */
import type { HttpResponse } from "../../http/message.ts";
import type { PodRule } from "./recorded/scenario.ts";
import { type Connection, isWrite, type WorkloadCluster } from "./workload-cluster.ts";

const AWAY_MS = 20_000;
const LATE_MS = 400;
const JUMP_MS = 7_200_000;

const CONFLICTS = [1, 3];

let jumps = 0;

export interface Fault {
  readonly name: string;
  readonly connection?: (cluster: WorkloadCluster) => Connection;
  readonly instances?: number;
  /** Without changes for this time the story goes on; 3 s by default. */
  readonly quietMs?: number;
  readonly rules?: readonly PodRule[];
  /** More pods than wanted may exist for a while, but not of a stateful set. */
  readonly mayExceed?: boolean;
  /** Between the steps of the story. */
  readonly between?: (cluster: WorkloadCluster) => void;
}

function conflict(): HttpResponse {
  const status = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: "Conflict",
    message: "changed",
    code: 409,
  };
  const body = Buffer.from(JSON.stringify(status));
  return { status: 409, headers: { "content-type": "application/json" }, body };
}

/** Calls the function for one of so many writes. */
function everyWrite(count: number, fault: Connection): Connection {
  let writes = 0;
  return (request, send) => (isWrite(request) && ++writes % count === 0 ? fault(request, send) : send());
}

export const faults: readonly Fault[] = [
  {
    name: "two of five updates conflict",
    mayExceed: true,
    // Not every second one: a controller with two writes in each sync would always fail at the same one.
    connection: () => {
      let writes = 0;
      return (request, send) =>
        isWrite(request) && request.method !== "POST" && CONFLICTS.includes(writes++ % 5)
          ? Promise.resolve(conflict())
          : send();
    },
  },
  {
    name: "every third response is lost",
    connection: () =>
      everyWrite(3, async (_request, send) => {
        await send();
        throw new Error("socket hang up");
      }),
  },
  {
    name: "the API server is away for a while after every fourth write",
    quietMs: 4 * AWAY_MS,
    connection: (cluster) => {
      let away = 0;
      let writes = 0;
      return async (request, send) => {
        if (cluster.clock.monotonic() < away) throw new Error("connect ECONNREFUSED");
        const response = await send();
        if (isWrite(request) && ++writes % 4 === 0) {
          away = cluster.clock.monotonic() + AWAY_MS;
          cluster.cut();
        }
        return response;
      };
    },
  },
  {
    name: "watches are late",
    connection: (cluster) => async (request, send) => {
      const response = await send();
      if (!request.query.includes("watch=") || response.body === undefined) return response;
      return { ...response, body: delayed(response.body, cluster) };
    },
  },
  {
    name: "the controllers are restarted after every write",
    connection: (cluster) => {
      let isRestarting = false;
      return async (request, send) => {
        const response = await send();
        if (isWrite(request) && !isRestarting) {
          isRestarting = true;
          void cluster.stop().then(() => {
            isRestarting = false;
            cluster.startControllers();
          });
        }
        return response;
      };
    },
  },
  { name: "two instances run", instances: 2, mayExceed: true },
  { name: "pods are slow", rules: [{ ready: 5000, deleteMs: 4000 }], quietMs: 10_000 },
  {
    name: "the clock jumps",
    // In turn forwards and backwards, so that the years of all stories stay within those of RFC 3339.
    between: ({ clock }) => {
      jumps++;
      clock.set(clock.now() + (jumps % 2 === 0 ? -JUMP_MS : JUMP_MS));
    },
  },
];

async function* delayed(
  body: NonNullable<HttpResponse["body"]>,
  { clock }: WorkloadCluster,
): AsyncIterable<Uint8Array> {
  if (body instanceof Uint8Array) yield body;
  else {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      await clock.sleep(LATE_MS);
      yield chunk;
    }
  }
}
