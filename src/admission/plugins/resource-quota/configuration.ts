/** Reads `ResourceQuotaConfiguration`: the resources that may only be used where a quota covers them. */
import { scopedResourceSelectorRequirement } from "../../../api/core/resource-quota/schema.ts";
import { svcGroup } from "../../../api/scheme.ts";
import { list, object, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { type ConfigurationIdentity, decodeConfiguration } from "../../chain/configuration.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";

const IDENTITY: ConfigurationIdentity = {
  group: "apiserver.config.k8s.io",
  versions: ["v1"],
  kinds: ["ResourceQuotaConfiguration"],
};
/** The earlier name of the kind. */
const OLD_IDENTITY: ConfigurationIdentity = {
  group: "resourcequota.admission.k8s.io",
  versions: ["v1beta1", "v1alpha1"],
  kinds: ["Configuration"],
};

const limitedResource = object("apiserver.config.k8s.io/v1.LimitedResource", {
  apiGroup: optional(0, string),
  resource: optional(0, string),
  matchContains: optional(0, list(string)),
  matchScopes: optional(0, list(scopedResourceSelectorRequirement)),
});
export type LimitedResource = Infer<typeof limitedResource>;

const resourceQuotaConfiguration = object("apiserver.config.k8s.io/v1.Configuration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  limitedResources: optional(0, list(limitedResource)),
});

/** Throws an error in one sentence, for the operator. */
export function readLimitedResources(configuration: PluginConfiguration | undefined): readonly LimitedResource[] {
  if (configuration === undefined) return [];
  const { apiVersion } = configuration.value;
  const isOld =
    typeof apiVersion === "string" && svcGroup(apiVersion.split("/")[0] ?? "") === svcGroup(OLD_IDENTITY.group);
  const identity = isOld ? OLD_IDENTITY : IDENTITY;
  const { limitedResources: limited = [] } = decodeConfiguration(configuration, identity, resourceQuotaConfiguration);
  const unnamed = limited.findIndex(({ resource = "" }) => resource === "");
  if (unnamed >= 0) {
    const path = `limitedResources[${unnamed}].resource`;
    throw new Error(`Cannot use ${configuration.locationOf(path)}: ${path}: it is missing`);
  }
  return limited;
}
