import { type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { parseCidr } from "../../../std/net/ip.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateCidr } from "../../meta/validation/ip.ts";
import { dropStatus, keepStatus, replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type ServiceCIDR, serviceCIDR } from "./schema.ts";

const CIDRS = "spec.cidrs";
const IMMUTABLE = "field is immutable";

function validateCidrs(cidrs: readonly string[]): readonly FieldError[] {
  if (cidrs.length === 0) return [requiredField(CIDRS, "at least one CIDR required")];
  if (cidrs.length > 2) return [invalidField(CIDRS, cidrs, "may only hold up to 2 values")];
  const errors = cidrs.flatMap((cidr, i) => validateCidr(cidr, index(CIDRS, i)));
  const [first, second] = cidrs.map((cidr) => parseCidr(cidr)?.family);
  if (first === undefined || first !== second) return errors;
  const detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
  return [...errors, invalidField(CIDRS, cidrs, detail)];
}

/** A block of the other family may join the one that is there; nothing else changes. */
function validateServiceCIDRUpdate(next: ServiceCIDR, previous: ServiceCIDR): readonly FieldError[] {
  const [cidrs, old] = [next.spec?.cidrs ?? [], previous.spec?.cidrs ?? []];
  const joins = old.length === 1 && cidrs.length === 2;
  if (cidrs.length !== old.length && !joins) return [invalidField(CIDRS, cidrs, IMMUTABLE)];
  const changed = old.flatMap((cidr, i) =>
    cidr === cidrs[i] ? [] : [invalidField(index(CIDRS, i), cidrs[i], IMMUTABLE)],
  );
  return joins ? [...changed, ...validateCidrs(cidrs)] : changed;
}

const serviceCIDRStrategy: Strategy<ServiceCIDR> = {
  prepareForCreate: dropStatus,
  prepareForUpdate: keepStatus,
  validate: (object, previous) => (previous === undefined ? validateCidrs(object.spec?.cidrs ?? []) : []),
  validateUpdate: validateServiceCIDRUpdate,
};

export const serviceCIDRKind: Kind<ServiceCIDR> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "ServiceCIDR",
  listKind: "ServiceCIDRList",
  plural: "servicecidrs",
  singular: "servicecidr",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("ServiceCIDR", { prepareForUpdate: replaceStatusOnly })],
  storageName: "servicecidrs",
  since: "1.33",
  storageVersion: "v1beta1",
  schema: serviceCIDR,
  columns: [
    nameColumn,
    column("CIDRs", ({ spec }) => (spec?.cidrs ?? []).join(","), "The blocks that addresses of services come from."),
    ageColumn,
  ],
  selectableFields: {},
  strategy: serviceCIDRStrategy,
};
