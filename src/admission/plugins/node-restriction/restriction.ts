import type { AdmissionRequest } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";

export type Deps = Pick<PluginDeps, "reader" | "authorizer" | "isFeatureEnabled">;

/** Throws a `StatusError` if the node may not make the request. */
export type Restriction = (node: string, request: AdmissionRequest, deps: Deps) => void | Promise<void>;
