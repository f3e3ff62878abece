import { unauthorized } from "../../api/status.ts";
import { InvalidCredentialsError } from "../../auth/authn/invalid-credentials-error.ts";
import type { Authenticator, Credentials } from "../../auth/user.ts";
import { type HttpRequest, type HttpResponse, headerText, headerTexts } from "../../http/message.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type RequestContext, type RequestFilter, withUser } from "../request/request-context.ts";

/** Bounds the log lines about failed authentication, so that a client cannot fill the disk. */
const LOGGED_FAILURES_PER_SECOND_MAX = 20;

/**
 * Sets the user of the request, or responds 401 and logs the reason. With `closesAnonymous` clients without credentials
 * cannot keep an HTTP/2 connection, on which requests cost little to send.
 */
export function withAuthentication(
  authenticate: Authenticator,
  clock: Clock,
  log: Logger,
  closesAnonymous = false,
): RequestFilter {
  const logFailure = createFailureLogger(clock, log);
  return (next) => async (context) => {
    const { request } = context;
    let user: Awaited<ReturnType<Authenticator>>;
    try {
      const found = authenticate(new RequestCredentials(context));
      user = found instanceof Promise ? await found : found;
    } catch (error) {
      if (error instanceof InvalidCredentialsError) logFailure(request, error.message);
      throw error;
    }
    if (user === undefined) {
      logFailure(request, "no credentials were sent");
      throw unauthorized();
    }
    if (!closesAnonymous || request.peer.protocol !== "h2" || user.name !== ANONYMOUS) {
      return await next(withUser(context, user));
    }
    return closeConnection(await next(withUser(context, user)));
  };
}

const ANONYMOUS = "system:anonymous";

/** Closes the HTTP/2 connections of requests that were not authenticated. Passed before errors become responses. */
export function withUnauthenticatedClose(): RequestFilter {
  return (next) => async (context) => {
    const response = await next(context);
    return response.status === 401 && context.request.peer.protocol === "h2" ? closeConnection(response) : response;
  };
}

/** The server sends a GOAWAY after the response. */
function closeConnection(response: HttpResponse): HttpResponse {
  return { ...response, headers: { ...response.headers, connection: "close" } };
}

/** The credentials of a request. A class, because one is created for each request. */
class RequestCredentials implements Credentials {
  readonly #context: RequestContext;

  constructor(context: RequestContext) {
    this.#context = context;
  }

  get certificates(): readonly Uint8Array[] {
    return this.#context.request.peer.certificates;
  }

  get authorization(): string | undefined {
    return this.#context.request.headers.authorization;
  }

  get path(): string {
    return this.#context.request.path;
  }

  header(name: string): string | undefined {
    return headerText(this.#context.request, name);
  }

  headerValues(name: string): readonly string[] {
    return headerTexts(this.#context.request, name);
  }

  headerNames(): readonly string[] {
    return Object.keys(this.#context.request.headers);
  }

  warn(text: string): void {
    this.#context.warnings.push(text);
  }

  annotate(key: string, value: string): void {
    this.#context.annotations.add(key, value);
  }
}

function createFailureLogger(clock: Clock, log: Logger): (request: HttpRequest, why: string) => void {
  let second = 0;
  let lines = 0;
  return ({ method, path, peer }, why) => {
    const now = Math.floor(clock.monotonic() / 1000);
    if (now !== second) {
      if (lines > LOGGED_FAILURES_PER_SECOND_MAX)
        log.warn("Further requests could not be authenticated", { times: lines - LOGGED_FAILURES_PER_SECOND_MAX });
      second = now;
      lines = 0;
    }
    lines++;
    if (lines <= LOGGED_FAILURES_PER_SECOND_MAX) {
      log.warn("Unable to authenticate the request", { why, method, path, from: peer.address });
    }
  };
}
