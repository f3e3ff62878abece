/** Lets a namespace use no more than its quotas say: Kubernetes' ResourceQuota. */
import { resourceQuotaKind } from "../../../api/core/resource-quota/kind.ts";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../../chain/plugin.ts";
import { Charger } from "./charge.ts";
import { limitedResources } from "./configuration.ts";
import { evaluatorOf } from "./evaluator.ts";

type Deps = Pick<PluginDeps, "reader" | "writer" | "clock" | "stopping" | "configuration">;

/** Throws one sentence for an operator. */
export function resourceQuota({ configuration, ...deps }: Deps): AdmissionPlugin {
  const limited = limitedResources(configuration);
  const charger = new Charger({ ...deps, limited });
  const isFree = (request: AdmissionRequest): MaybePromise<boolean> => {
    if (limited.length > 0) return false;
    return andThen(deps.reader.list(resourceQuotaKind, request.namespace, request), ({ length }) => length === 0);
  };
  return {
    name: "ResourceQuota",
    handles: ({ kind, operation, subresource }) => evaluatorOf(kind)?.handles(operation, subresource) === true,
    validate(request) {
      const evaluator = evaluatorOf(request.kind);
      if (evaluator === undefined) return;
      return andThen(isFree(request), (free) => (free ? undefined : charger.charge(request, evaluator)));
    },
  };
}
