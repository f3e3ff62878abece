/** `/debug/pprof/` and `/debug/flags/v`: profiles of the agent and the verbosity of its log. */
import { readBody } from "../../../http/body.ts";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { bytesResponse } from "../../../http/respond.ts";
import type { EventLoopContention } from "../../../profiling/contention.ts";
import { createDebugPages } from "../../../profiling/debug-pages.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { decodeSegments, type Endpoints } from "../endpoints.ts";
import { accepts, goErrorResponse, methodNotAllowed, notAcceptable, routeNotFound } from "../go-responses.ts";

export interface DebugPagesOptions {
  readonly profiling: boolean;
  /** Undefined without --contention-profiling. */
  readonly contention: EventLoopContention | undefined;
  /** Sets the verbosity of the log (`-v`); undefined: it cannot be set. */
  readonly setVerbosity: ((level: number) => void) | undefined;
}

const LEVEL_BYTES_MAX = 64;
const LEVEL_MAX = 2 ** 31 - 1;
/** Served by Go's `net/http/pprof` also without a profile of that name. */
const ROOT = "/debug/pprof";

export function addDebugPages(endpoints: Endpoints, options: DebugPagesOptions, clock: Clock): void {
  const { profiling, contention, setVerbosity } = options;
  if (profiling) {
    const debug = { clock, contention, setVerbosity: () => undefined };
    const pages = new Map(createDebugPages(debug).map((page) => [page.path, page]));
    // kubelet's route needs a name, so that it serves no list of the profiles.
    endpoints.prefix(ROOT, async (request) => {
      const path = decodeSegments(request.path);
      if (path === `${ROOT}/`) return routeNotFound();
      if (request.method !== "GET") return methodNotAllowed(["GET"]);
      if (!accepts(request.headers.accept, "")) return notAcceptable("");
      const page = pages.get(path);
      if (page !== undefined) return await page.respond(request);
      return goErrorResponse(404, "Unknown profile", { "x-go-pprof": "1" });
    });
    endpoints.redirect(ROOT);
  } else {
    endpoints.prefix(ROOT, async () => goErrorResponse(405, "profiling endpoint is disabled."));
  }
  endpoints.path("/debug/flags/v", async (request) =>
    setVerbosity === undefined
      ? goErrorResponse(405, "flags endpoint is disabled.")
      : await changeVerbosity(request, setVerbosity),
  );
}

async function changeVerbosity(request: HttpRequest, setVerbosity: (level: number) => void): Promise<HttpResponse> {
  if (request.method !== "PUT") return plainResponse(406, "unsupported http method\n");
  const text = Buffer.from(await readBody(request, LEVEL_BYTES_MAX)).toString();
  if (!/^\d{1,10}$/.test(text) || Number(text) > LEVEL_MAX) {
    return plainResponse(400, `strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax\n`);
  }
  setVerbosity(Number(text));
  return plainResponse(200, `successfully set klog.logging.verbosity to ${text}\n`);
}

function plainResponse(status: number, text: string): HttpResponse {
  return bytesResponse(status, "text/plain", Buffer.from(text), { "x-content-type-options": "nosniff" });
}
