import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionRequest } from "../../chain/plugin.ts";

export type Deps = Pick<PluginDeps, "reader" | "authorizer" | "isFeatureEnabled">;

/** Throws a `StatusError` for what the node may not do. */
export type Restriction = (node: string, request: AdmissionRequest, deps: Deps) => void | Promise<void>;
