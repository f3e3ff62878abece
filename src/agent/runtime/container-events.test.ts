import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import t from "tap";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { watchContainerEvents } from "./container-events.ts";
import { eventEnvelope } from "./containerd-events.ts";
import { runtimeService } from "./cri/services.ts";
import { createCriClient, type WatchContainerEvents } from "./cri-client.ts";
import { RuntimeError } from "./runtime.ts";

const event = { containerId: "c1", containerEventType: "CONTAINER_STOPPED_EVENT" as const };

type Handler = grpc.handleServerStreamingCall<unknown, unknown>;

interface Streams {
  /** Of GetContainerEvents. */
  readonly cri?: Handler;
  /** Of containerd's own service. */
  readonly containerd?: Handler;
}

/** A runtime with only these streams. */
async function serve({ cri, containerd }: Streams): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-events-"));
  const server = new grpc.Server();
  t.teardown(async () => {
    server.forceShutdown();
    await rm(directory, { recursive: true, force: true });
  });
  const addStream = (path: string, response: ObjectSchema, handler: Handler | undefined): void => {
    if (handler === undefined) return;
    const call = {
      path,
      requestStream: false,
      responseStream: true,
      requestSerialize: () => Buffer.alloc(0),
      requestDeserialize: (bytes: Buffer) => ({ text: bytes.toString("latin1") }),
      responseSerialize: (value: unknown) => Buffer.from(encodeProtobuf(response, value)),
      responseDeserialize: () => ({}),
    } as const;
    server.addService({ stream: call }, { stream: handler });
  };
  addStream(
    "/runtime.v1.RuntimeService/GetContainerEvents",
    runtimeService.GetContainerEvents.response as ObjectSchema,
    cri,
  );
  addStream("/containerd.services.events.v1.Events/Subscribe", eventEnvelope as ObjectSchema, containerd);
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
      await serve({
        cri: (call) => {
          call.write(event);
          call.end();
        },
      }),
    );
    const seen: unknown[] = [];
    await ending.events((each) => seen.push(each), never);
    t.match(seen, [event]);

    using lasting = clientOf(await serve({ cri: (call) => void call.write(event) }));
    const stop = new AbortController();
    const stream = lasting.events(() => stop.abort(new Error("enough")), stop.signal);
    await t.rejects(stream, { message: "enough" });

    using dumb = clientOf(await serve({}));
    await t.rejects(
      dumb.events(() => undefined, never),
      { code: "UNIMPLEMENTED" },
    );
  },
);

t.test("createCriClient().events() streams containerd's events where the CRI has none", async (t) => {
  const exit = (containerId: string, id: string): object => {
    // Field 1 and 2 of containerd.events.TaskExit.
    const fields = [containerId, id].map((text, index) => [((index + 1) << 3) | 2, text.length, ...Buffer.from(text)]);
    return {
      topic: "/tasks/exit",
      event: { typeUrl: "containerd.events.TaskExit", value: Buffer.from(fields.flat()) },
    };
  };
  let filters: unknown;
  using client = clientOf(
    await serve({
      containerd: (call) => {
        filters = call.request;
        call.write({ topic: "/tasks/start", timestamp: { seconds: 5n, nanos: 7 } });
        call.write(exit("c1", "probe"));
        call.write(exit("c1", "c1"));
        call.end();
      },
    }),
  );
  const seen: unknown[] = [];
  await client.events((each) => seen.push(each), new AbortController().signal);
  t.strictSame(
    seen,
    [{ createdAt: 5_000_000_007n }, { createdAt: undefined }],
    "without the end of an exec in the container",
  );
  t.match(filters, { text: /namespace=="k8s\.io",topic=="\/tasks\/exit"/ });
});

t.test("watchContainerEvents() reports an open stream when the runtime has not ended it at once", async (t) => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const states: boolean[] = [];
  let end = (): void => undefined;
  const running = watchContainerEvents({
    events: (_, signal) =>
      new Promise((resolve, reject) => {
        end = resolve;
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
    clock,
    random: systemRandom,
    log: silentLogger,
    onEvent: () => undefined,
    onStream: (isOpen) => states.push(isOpen),
    signal: stop.signal,
  });
  await clock.advance(4_000);
  end();
  await clock.advance(2_000);
  t.same(states, [false]);
  await clock.advance(6_000);
  t.same(states, [false, true]);
  stop.abort(new Error("over"));
  await running;
  t.same(states, [false, true, false]);
  t.equal(clock.pending, 0);
});

t.test(
  "watchContainerEvents() reconnects when the runtime restarts, and rarely if it does not support events",
  async (t) => {
    const clock = new FakeClock();
    const stop = new AbortController();
    let count = 0;
    const ways: WatchContainerEvents[] = [
      async (onEvent) => onEvent({ ...event, createdAt: undefined }),
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
      onStream: () => undefined,
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
