import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { type Ingress, ingress } from "./schema.ts";
import { ingressStrategy } from "./strategy.ts";
import { ingressStatusWarnings, validateIngressStatus } from "./validation.ts";

const HOSTS_SHOWN = 3;

/** The first hosts; `*` without any. */
function hostsText({ spec }: Ingress): string {
  const rules = spec?.rules ?? [];
  const named = rules.map(({ host }) => host).filter((host) => host);
  const shown = named.slice(0, HOSTS_SHOWN).join(",") || "*";
  // As in Kubernetes, a rule after the last host that is shown counts, also one without a host.
  const isComplete = named.length < HOSTS_SHOWN || (named.length === HOSTS_SHOWN && Boolean(rules.at(-1)?.host));
  return isComplete ? shown : `${shown} + ${rules.length - HOSTS_SHOWN} more...`;
}

function addressText({ status }: Ingress): string {
  const addresses = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || "");
  return [...new Set(addresses.filter((address) => address !== ""))].sort().join(",");
}

export const ingressKind: Kind<Ingress> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "Ingress",
  listKind: "IngressList",
  plural: "ingresses",
  singular: "ingress",
  shortNames: ["ing"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    statusSubresource("Ingress", { validateUpdate: validateIngressStatus, warnings: ingressStatusWarnings }),
  ],
  storageName: "ingress",
  schema: ingress,
  columns: [
    nameColumn,
    column("Class", ({ spec }) => spec?.ingressClassName ?? "<none>"),
    column("Hosts", hostsText),
    column("Address", addressText),
    column("Ports", ({ spec }) => ((spec?.tls ?? []).length > 0 ? "80, 443" : "80")),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "metadata", "spec"],
  strategy: ingressStrategy,
};
