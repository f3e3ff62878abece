/** `/debug/pprof` and `/debug/flags/v`: profiles and the log verbosity of this process. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { readBody } from "../http/body.ts";
import type { HttpRequest, HttpResponse } from "../http/message.ts";
import { bytesResponse, textResponse } from "../http/respond.ts";
import { lazy } from "../std/async/lazy.ts";
import type { Clock } from "../std/time/clock.ts";
import type { EventLoopContention } from "./contention.ts";
import type { StackProfile } from "./pprof.ts";

const compress = promisify(gzip);

const SECONDS_MAX = 300;
const NOSNIFF = { "x-content-type-options": "nosniff" };
const LEVEL_BYTES_MAX = 64;

export interface DebugDeps {
  readonly clock: Clock;
  /** Undefined without --contention-profiling. */
  readonly contention: EventLoopContention | undefined;
  /** Sets the log verbosity (`-v`). */
  readonly setVerbosity: (level: number) => void;
}

export interface DebugPage {
  readonly path: string;
  readonly methods: readonly string[];
  respond(request: HttpRequest): Promise<HttpResponse>;
}

export function createDebugPages(deps: DebugDeps): readonly DebugPage[] {
  const { clock } = deps;
  const profiler = lazy(async () => new (await import("./profiler.ts")).Profiler(clock));
  const both = ["GET", "POST"];
  const page = (path: string, respond: DebugPage["respond"], methods: readonly string[] = both): DebugPage => ({
    path,
    methods,
    respond,
  });
  const profile = (path: string, seconds: number, take: Take): DebugPage =>
    page(`/debug/pprof/${path}`, async (request) => {
      const refusal = path === "heap" || path === "allocs" ? refuseSeconds(request) : undefined;
      return refusal ?? (await profileResponse(request, path, seconds, take));
    });
  return [
    page("/debug/pprof", async () => indexPage()),
    profile("profile", 30, async (seconds, signal) => (await profiler()).cpu(seconds, signal)),
    profile("heap", 10, async (seconds, signal) => (await profiler()).heap("inuse", seconds, signal)),
    profile("allocs", 10, async (seconds, signal) => (await profiler()).heap("alloc", seconds, signal)),
    profile("trace", 1, async (seconds, signal) => ({ raw: await (await profiler()).trace(seconds, signal) })),
    ...["goroutine", "threadcreate", "block", "mutex"].map((name) =>
      page(
        `/debug/pprof/${name}`,
        async (request) =>
          refuseSeconds(request) ?? (await pprofResponse(request, name, await takeProcessProfile(name, deps))),
      ),
    ),
    page("/debug/pprof/cmdline", async () => textResponse(200, process.argv.join("\0"), NOSNIFF)),
    // As Go without addresses to look up; profiles contain the names of functions.
    page("/debug/pprof/symbol", async () => textResponse(200, "num_symbols: 1\n", NOSNIFF)),
    page("/debug/flags", async () =>
      textResponse(200, "/debug/flags/v: PUT a number to change the verbosity of logs\n"),
    ),
    page("/debug/flags/v", (request) => changeVerbosity(request, deps), ["GET", "POST", "PUT", "PATCH", "DELETE"]),
  ];
}

/** The profiles of Go's runtime that need no time. */
async function takeProcessProfile(name: string, { clock, contention }: DebugDeps): Promise<StackProfile> {
  const profiles = await import("./process-profiles.ts");
  if (name === "goroutine") return profiles.profileActiveResources(clock.now());
  if (name === "threadcreate") return await profiles.profileThreads(clock.now());
  const delays = name === "block" ? contention?.stacks() : undefined;
  return delays ?? profiles.emptyContention(clock.now());
}

/** Go's answer to a profile of a time that is none. Those of this file have the state of one moment. */
function refuseSeconds({ query }: HttpRequest): HttpResponse | undefined {
  const parameters = new URLSearchParams(query);
  const seconds = parameters.get("seconds") ?? "";
  if (seconds === "") return undefined;
  if (!/^[+-]?\d{1,18}$/.test(seconds) || Number(seconds) <= 0) {
    return goError('invalid value for "seconds" - must be a positive integer');
  }
  const debug = parameters.get("debug") ?? "";
  return /^[+-]?\d+$/.test(debug) && Number(debug) !== 0
    ? goError("seconds and debug params are incompatible")
    : undefined;
}

function goError(message: string): HttpResponse {
  return textResponse(400, `${message}\n`, { ...NOSNIFF, "x-go-pprof": "1" });
}

type Take = (
  seconds: number,
  signal: AbortSignal,
) => Promise<{ readonly raw: object; readonly stacks?: StackProfile | undefined }>;

async function profileResponse(request: HttpRequest, name: string, usual: number, take: Take): Promise<HttpResponse> {
  const query = new URLSearchParams(request.query);
  const requested = Number(query.get("seconds") ?? usual);
  const seconds = requested > 0 ? requested : usual;
  if (seconds > SECONDS_MAX) {
    return textResponse(400, `seconds must be at most ${SECONDS_MAX}: profiles are held in memory\n`, NOSNIFF);
  }
  try {
    const { raw, stacks } = await take(seconds, request.signal);
    if (stacks !== undefined && !query.has("format")) return await pprofResponse(request, name, stacks);
    const file = { profile: "svc.cpuprofile", trace: "svc.trace.json" }[name] ?? "svc.heapprofile";
    return bytesResponse(200, "application/json", Buffer.from(JSON.stringify(raw)), attachmentHeaders(file));
  } catch (error) {
    const { ProfilerBusyError } = await import("./profiler.ts");
    if (error instanceof ProfilerBusyError)
      return textResponse(500, `${error.message}\n`, { ...NOSNIFF, "x-go-pprof": "1" });
    throw error;
  }
}

async function pprofResponse({ query }: HttpRequest, name: string, stacks: StackProfile): Promise<HttpResponse> {
  const debug = name === "profile" ? 0 : Number(new URLSearchParams(query).get("debug"));
  if (Number.isInteger(debug) && debug !== 0) {
    const { formatProfile } = await import("./text-profile.ts");
    return textResponse(200, formatProfile(name, stacks), NOSNIFF);
  }
  const { encodePprof } = await import("./pprof.ts");
  return bytesResponse(200, "application/octet-stream", await compress(encodePprof(stacks)), attachmentHeaders(name));
}

function attachmentHeaders(file: string) {
  return { ...NOSNIFF, "content-disposition": `attachment; filename="${file}"` };
}

async function changeVerbosity(request: HttpRequest, { setVerbosity }: DebugDeps): Promise<HttpResponse> {
  if (request.method !== "PUT") return textResponse(406, "unsupported http method\n", NOSNIFF);
  const text = Buffer.from(await readBody(request, LEVEL_BYTES_MAX)).toString();
  if (!/^\d{1,9}$/.test(text)) {
    return textResponse(400, `failed to set the verbosity to ${JSON.stringify(text)}: it must be a number\n`, NOSNIFF);
  }
  setVerbosity(Number(text));
  return textResponse(200, `successfully set klog.logging.verbosity to ${text}`);
}

const CONTENTS: readonly (readonly [path: string, what: string])[] = [
  ["profile?seconds=30", "CPU profile of the given seconds"],
  ["heap?seconds=10", "sampled allocations of the given seconds that are live at the end"],
  ["allocs?seconds=10", "all sampled allocations of the given seconds"],
  ["trace?seconds=1", "trace events of Node.js and V8 for chrome://tracing"],
  ["goroutine?debug=1", "what keeps the event loop alive: timers, sockets, requests and children, by type"],
  ["threadcreate?debug=1", "threads by name"],
  ["block", "delays of the event loop since the start; empty without --contention-profiling"],
  ["mutex", "empty: JavaScript has no locks"],
  ["cmdline", "the command line"],
  ["symbol", "no addresses to look up: profiles contain function names"],
];

function indexPage(): HttpResponse {
  const rows = CONTENTS.map(([path, what]) => `<li><a href="/debug/pprof/${path}">${path}</a>: ${what}</li>`);
  const page = `<!doctype html><title>/debug/pprof/</title><h1>/debug/pprof/</h1>
<p>Profiles are for <code>go tool pprof</code>; with <code>format=cpuprofile</code> or <code>format=heapprofile</code>
for Chrome's developer tools, and with <code>debug=1</code> as text.</p>
<ul>
${rows.join("\n")}
</ul>
`;
  return bytesResponse(200, "text/html; charset=utf-8", Buffer.from(page), NOSNIFF);
}
