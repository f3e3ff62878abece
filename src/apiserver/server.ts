import type { UserInfo } from "../auth/user.ts";
import type { Handler } from "../http/message.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { ApiServerConfig } from "./config.ts";

export interface RunningApiServer extends AsyncDisposable {
  readonly address: { readonly host: string; readonly port: number };
  /** The whole chain; in-process components call it with `authorization: Bearer <token>`. */
  readonly handler: Handler;
  /** A random token, never written anywhere, for a component of this process. */
  loopbackToken(user: UserInfo): string;
  /** Stops as SIGTERM would: not ready, delay, drain, store closed. */
  close(): Promise<void>;
}

/** Resolves when the server is ready. Rejects with one sentence for an operator. */
export declare function startApiServer(
  config: ApiServerConfig,
  deps: { readonly clock: Clock; readonly log: Logger },
): Promise<RunningApiServer>;
