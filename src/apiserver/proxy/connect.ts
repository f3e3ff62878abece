/** The streaming subresources of pods, and the proxies to pods, services and nodes. */
import { lazy } from "../../std/async/lazy.ts";
import type { ConnectHandler } from "../handlers/connect.ts";
import type { ProxyDeps } from "./proxy-handlers.ts";
import type { PodStreamDeps } from "./streams/pod-streams.ts";

export interface ConnectDeps extends PodStreamDeps, ProxyDeps {}

type ConnectHandlers = Readonly<Record<string, ConnectHandler>>;

/** By plural and subresource: `pods/exec`. The code of streams and proxies is loaded with the first of them. */
export function createConnectHandlers(deps: ConnectDeps): ConnectHandlers {
  const streams = lazy(async () => (await import("./streams/pod-streams.ts")).createStreamHandlers(deps));
  const proxies = lazy(async () => (await import("./proxy-handlers.ts")).createProxyHandlers(deps));
  return {
    "pods/exec": async (...request) => await (await streams()).exec(...request),
    "pods/attach": async (...request) => await (await streams()).attach(...request),
    "pods/portforward": async (...request) => await (await streams()).portForward(...request),
    "pods/proxy": async (...request) => await (await proxies()).pods(...request),
    "services/proxy": async (...request) => await (await proxies()).services(...request),
    "nodes/proxy": async (...request) => await (await proxies()).nodes(...request),
  };
}
