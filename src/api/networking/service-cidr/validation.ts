import { type FieldError, invalidField, requiredField, validateEach } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { parseCidr } from "../../../std/net/ip.ts";
import { validateCidr } from "../../meta/validation/ip.ts";
import type { ServiceCIDR } from "./schema.ts";

const CIDRS = "spec.cidrs";

const IMMUTABLE = "field is immutable";

export function validateCidrs(cidrs: readonly string[]): readonly FieldError[] {
  if (cidrs.length === 0) return [requiredField(CIDRS, "at least one CIDR required")];
  if (cidrs.length > 2) return [invalidField(CIDRS, cidrs, "may only hold up to 2 values")];
  const errors = validateEach(cidrs, (cidr, i) => validateCidr(cidr, index(CIDRS, i)));
  const [first, second] = cidrs.map((cidr) => parseCidr(cidr)?.family);
  if (first === undefined || first !== second) return errors;
  const detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
  return [...errors, invalidField(CIDRS, cidrs, detail)];
}

/** An update may only add a CIDR of the other IP family. */
export function validateServiceCIDRUpdate(next: ServiceCIDR, previous: ServiceCIDR): readonly FieldError[] {
  const [cidrs, old] = [next.spec?.cidrs ?? [], previous.spec?.cidrs ?? []];
  const joins = old.length === 1 && cidrs.length === 2;
  if (cidrs.length !== old.length && !joins) return [invalidField(CIDRS, cidrs, IMMUTABLE)];
  const changed = validateEach(old, (cidr, i) =>
    cidr === cidrs[i] ? [] : [invalidField(index(CIDRS, i), cidrs[i], IMMUTABLE)],
  );
  return joins ? [...changed, ...validateCidrs(cidrs)] : changed;
}
