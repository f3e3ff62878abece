import type { HttpResponse } from "../../http/message.ts";
import { isStreamed } from "../../http/server/write-body.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { measureBody } from "../metrics/measured-stream.ts";
import type { RequestContext, RequestFilter } from "../request/request-context.ts";

/** The verbosity of kube-apiserver's request log. */
const REQUEST_LEVEL = 3;

/** Query parameters whose values are logged. Others may hold secrets: tokens, commands. */
const LOGGED_PARAMETERS = new Set(
  (
    "allowWatchBookmarks container continue dryRun fieldManager fieldSelector fieldValidation follow force " +
    "gracePeriodSeconds labelSelector limit limitBytes orphanDependents pretty previous propagationPolicy " +
    "resourceVersion resourceVersionMatch sendInitialEvents sinceSeconds sinceTime stream tailLines timeout " +
    "timeoutSeconds timestamps watch"
  ).split(" "),
);

/** Logs each request with its response at -v=3, as kube-apiserver does: streams when they end. */
export function withRequestLog(log: Logger, clock: Clock): RequestFilter {
  return (next) => async (context) => {
    const lines = log.v(REQUEST_LEVEL);
    if (lines === undefined) return await next(context);
    const start = clock.monotonic();
    const write = (resp: number | string): void => {
      const latency = `${(clock.monotonic() - start).toFixed(3)}ms`;
      lines.info("HTTP", { ...describeRequest(context), latency, resp });
    };
    let response: HttpResponse;
    try {
      response = await next(context);
    } catch (error) {
      write("aborted");
      throw error;
    }
    const { status, body } = response;
    if (!isStreamed(body)) {
      write(status);
      return response;
    }
    return measureBody(response, body, () => write(status), undefined);
  };
}

function describeRequest({ request, info }: RequestContext): Readonly<Record<string, string>> {
  const { method, path, query, headers, peer } = request;
  return {
    method,
    verb: info.verb,
    URI: query === "" ? path : `${path}?${redactQuery(query)}`,
    userAgent: headers["user-agent"] ?? "",
    srcIP: peer.protocol === "local" ? "local" : `${peer.address}:${peer.port}`,
  };
}

function redactQuery(query: string): string {
  return query.replace(/([^&=]*)=[^&]*/g, (pair, name: string) => (LOGGED_PARAMETERS.has(name) ? pair : `${name}=…`));
}
