import { unauthorized } from "../../api/status.ts";
import { InvalidCredentialsError } from "../../auth/authn/invalid-credentials-error.ts";
import { ANONYMOUS, type Authenticator, type Credentials, type UserInfo } from "../../auth/user.ts";
import { type HttpRequest, type HttpResponse, headerText, headerTexts } from "../../http/message.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type RequestContext, type RequestFilter, type RequestHandler, withUser } from "../request/request-context.ts";

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
  return (next) => (context) => {
    // Mostly no promise, which would delay every request.
    let found: ReturnType<Authenticator>;
    try {
      found = authenticate(new RequestCredentials(context));
    } catch (error) {
      return Promise.reject(failed(context, error));
    }
    if (!(found instanceof Promise)) return proceed(context, found, next);
    return found.then(
      (user) => proceed(context, user, next),
      (error: unknown) => {
        throw failed(context, error);
      },
    );
  };

  function proceed(context: RequestContext, user: UserInfo | undefined, next: RequestHandler): Promise<HttpResponse> {
    if (user === undefined) {
      logFailure(context.request, "no credentials were sent");
      closeConnection(context);
      return Promise.reject(unauthorized());
    }
    if (user.name === ANONYMOUS) closeConnection(context);
    return next(withUser(context, user));
  }

  function failed(context: RequestContext, error: unknown): Error {
    if (error instanceof InvalidCredentialsError) logFailure(context.request, error.message);
    closeConnection(context);
    return error instanceof Error ? error : new Error(String(error));
  }

  /** The server sends a GOAWAY after the response, whatever it is. */
  function closeConnection({ request, responseHeaders }: RequestContext): void {
    if (closesAnonymous && request.peer.protocol === "h2" && responseHeaders !== undefined) {
      responseHeaders.connection = "close";
    }
  }
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
