/**
 * HTTP/2 conformance (RFC 9113): each case sends the same bytes to a plain node:http2 server and to listen(), which
 * must conform wherever node:http2 does. The first cases are the 146 of h2spec 2.6, which itself needs a Go toolchain.
 */
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import t, { type Test } from "tap";
import { readBody } from "../../http/body.ts";
import { textResponse } from "../../http/respond.ts";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { RawConnection, TYPE } from "../../testing/http/test-frames.ts";
import { type Case, type Event, eventsOf, type Step, settingsIn } from "./case.ts";
import { frameKindCases, otherFrameCases } from "./frame-types.ts";
import { genericCases } from "./generic.ts";
import { messageCases, otherMessageCases } from "./messages.ts";
import { furtherCases, streamCases } from "./streams.ts";

const H2SPEC = [...genericCases, ...streamCases, ...frameKindCases, ...messageCases];
const OTHERS = [...furtherCases, ...otherFrameCases, ...otherMessageCases];
/** Timeout of an expected event. */
const WAIT_MS = 2000;
const CONCURRENCY = 12;

interface Outcome {
  readonly conforms: boolean;
  readonly events: readonly Event[];
}

async function outcomeOf(port: number, [, , steps, expected]: Case): Promise<Outcome> {
  await using connection = await RawConnection.open(port);
  for (const step of steps) await runStep(connection, step);
  const conforms = (): boolean =>
    receivedEvents(connection).some((event) => expected.some((each) => matches(event, each)));
  await connection.until(conforms, WAIT_MS);
  return { conforms: conforms(), events: receivedEvents(connection) };
}

async function runStep(connection: RawConnection, step: Step): Promise<void> {
  if (step instanceof Uint8Array) {
    connection.send(step);
  } else if ("make" in step) {
    const answer = connection.frames.find(({ type }) => type === TYPE.settings);
    connection.send(step.make(answer === undefined ? new Map() : settingsIn(answer)));
  } else {
    const count = (events: readonly Event[], event: Event): number => events.filter((each) => each === event).length;
    const all = () => step.until.every((event) => count(receivedEvents(connection), event) >= count(step.until, event));
    await connection.until(all, WAIT_MS);
  }
}

function receivedEvents({ frames, closed }: RawConnection): readonly Event[] {
  return [...frames.flatMap(eventsOf), ...(closed ? ["closed"] : [])];
}

/** `*` stands for any stream. */
function matches(event: Event, wanted: Event): boolean {
  return event === wanted || (wanted.includes("*") && event.replace(/ \d+ /, " * ") === wanted);
}

const pair = (await makeServerCertificate()).server;
/** Lets the server read frames that arrive together before it responds. */
const readPendingFrames = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

async function barePort(t: Test): Promise<number> {
  const bare = createSecureServer({ cert: pair.cert, key: pair.key });
  bare.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    stream.resume().on("end", () => {
      void readPendingFrames().then(() => {
        if (stream.destroyed) return;
        stream.respond({ ":status": 200 });
        stream.end("hello");
      });
    });
  });
  bare.on("session", (session) => session.on("error", () => {}));
  await new Promise<void>((resolve) => bare.listen(0, "127.0.0.1", resolve));
  t.teardown(() => bare.close());
  return (bare.address() as AddressInfo).port;
}

async function ourPort(t: Test): Promise<number> {
  const listener = await listen({
    handler: async (message) => {
      await readBody(message, 100_000);
      await readPendingFrames();
      return textResponse(200, "hello");
    },
    log: silentLogger,
    host: "127.0.0.1",
    tls: { cert: pair.cert, key: pair.key },
  });
  t.teardown(() => listener.close(0));
  return listener.port;
}

t.test("listen() conforms to RFC 9113 in every case in which node:http2 does", async (t) => {
  const [bare, ours] = await Promise.all([barePort(t), ourPort(t)]);
  for (const [title, cases] of [["of h2spec", H2SPEC] as const, ["others", OTHERS] as const]) {
    let conforming = 0;
    let platform = 0;
    const remaining = cases.values();
    const work = async (): Promise<void> => {
      for (const each of remaining) {
        const [theirs, our] = await Promise.all([outcomeOf(bare, each), outcomeOf(ours, each)]);
        if (our.conforms) conforming++;
        if (theirs.conforms) platform++;
        const answer = `${each[0]}: ${each[1]}: ${our.events.slice(2).join(", ")}`;
        t.ok(our.conforms || !theirs.conforms, answer);
        if (!our.conforms) t.comment(`neither server conforms: ${answer}`);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    t.comment(`frames, ${title}: ${conforming} of ${cases.length} conform; node:http2 ${platform}`);
  }
  t.equal(H2SPEC.length, 146);
});
