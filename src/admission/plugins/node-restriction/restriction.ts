import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionRequest } from "../../chain/plugin.ts";

export type Deps = Pick<PluginDeps, "reader" | "authorizer" | "isFeatureEnabled">;

/** Throws a `StatusError` if the node may not make the request. */
export type Restriction = (node: string, request: AdmissionRequest, deps: Deps) => void | Promise<void>;
