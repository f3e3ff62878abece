import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import t from "tap";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { watchContainerEvents } from "./container-events.ts";
import { runtimeService } from "./cri/services.ts";
import { createCriClient, type WatchContainerEvents } from "./cri-client.ts";
import { RuntimeError } from "./runtime.ts";

const event = { containerId: "c1", containerEventType: "CONTAINER_STOPPED_EVENT" as const };

/** A CRI server with only GetContainerEvents; without a handler it does not implement that either. */
async function serve(handler: grpc.handleServerStreamingCall<unknown, unknown> | undefined): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-events-"));
  const server = new grpc.Server();
  t.teardown(async () => {
    server.forceShutdown();
    await rm(directory, { recursive: true, force: true });
  });
  const path = "/runtime.v1.RuntimeService/GetContainerEvents";
  const call = {
    path,
    requestStream: false,
    responseStream: true,
    requestSerialize: () => Buffer.alloc(0),
    requestDeserialize: () => ({}),
    responseSerialize: (value: unknown) =>
      Buffer.from(encodeProtobuf(runtimeService.GetContainerEvents.response, value)),
    responseDeserialize: () => ({}),
  } as const;
  if (handler !== undefined) server.addService({ GetContainerEvents: call }, { GetContainerEvents: handler });
  const endpoint = `unix://${join(directory, "cri.sock")}`;
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(endpoint, grpc.ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    ),
  );
  return endpoint;
}

const clientOf = (endpoint: string) => createCriClient({ endpoint, requestTimeoutMs: 1000, clock: systemClock });

t.test(
  "createCriClient().events() streams the runtime's events until the stream ends or the signal aborts",
  async (t) => {
    const never = new AbortController().signal;
    using ending = clientOf(
      await serve((call) => {
        call.write(event);
        call.end();
      }),
    );
    const seen: unknown[] = [];
    await ending.events((each) => seen.push(each), never);
    t.match(seen, [event]);

    using lasting = clientOf(await serve((call) => void call.write(event)));
    const stop = new AbortController();
    const stream = lasting.events(() => stop.abort(new Error("enough")), stop.signal);
    await t.rejects(stream, { message: "enough" });

    using dumb = clientOf(await serve(undefined));
    await t.rejects(
      dumb.events(() => undefined, never),
      { code: "UNIMPLEMENTED" },
    );
  },
);

t.test(
  "watchContainerEvents() reconnects when the runtime restarts, and rarely if it does not support events",
  async (t) => {
    const clock = new FakeClock();
    const stop = new AbortController();
    let count = 0;
    const ways: WatchContainerEvents[] = [
      async (onEvent) => onEvent(event),
      async () => Promise.reject(new RuntimeError("UNAVAILABLE", "away")),
      async () => Promise.reject(new RuntimeError("UNIMPLEMENTED", "unknown method GetContainerEvents")),
    ];
    let calls = 0;
    const running = watchContainerEvents({
      events: async (...listener) => await ways[Math.min(calls++, ways.length - 1)]?.(...listener),
      clock,
      random: systemRandom,
      log: silentLogger,
      onEvent: () => count++,
      signal: stop.signal,
    });
    await clock.advance(0);
    t.same([calls, count], [1, 1]);
    await clock.advance(1_500);
    t.same([calls, count], [3, 3], "a listing follows, because events may be lost");
    await clock.advance(299_000);
    t.equal(calls, 3);
    await clock.advance(2_000);
    t.equal(calls, 4);
    stop.abort();
    await running;
    t.equal(clock.pending, 0);
  },
);
