/** ResourceQuota: rejects requests that exceed the quotas of the namespace, and charges the others to them. */
import { resourceQuotaKind } from "../../../api/core/resource-quota/kind.ts";
import { andThen, type MaybePromise } from "../../../std/async/maybe-promise.ts";
import type { AdmissionRequest } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { QuotaCharger } from "./charge.ts";
import { readLimitedResources } from "./configuration.ts";
import { evaluatorOf } from "./evaluators.ts";

type Deps = Pick<PluginDeps, "reader" | "writer" | "clock" | "stopping" | "configuration">;

/** Throws an error in one sentence, for the operator. */
export function resourceQuota({ configuration, ...deps }: Deps): AdmissionPlugin {
  const limited = readLimitedResources(configuration);
  const charger = new QuotaCharger({ ...deps, limited });
  const hasNoQuota = (request: AdmissionRequest): MaybePromise<boolean> => {
    if (limited.length > 0) return false;
    return andThen(deps.reader.list(resourceQuotaKind, request.namespace, request), ({ length }) => length === 0);
  };
  return {
    name: "ResourceQuota",
    handles: ({ kind, operation, subresource }) => evaluatorOf(kind)?.handles(operation, subresource) === true,
    validate(request) {
      const evaluator = evaluatorOf(request.kind);
      if (evaluator === undefined) return;
      return andThen(hasNoQuota(request), (free) => (free ? undefined : charger.charge(request, evaluator)));
    },
  };
}
