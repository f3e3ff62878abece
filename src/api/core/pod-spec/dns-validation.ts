/** Rules for the DNS configuration and the host aliases of a pod. */
import {
  errorsMax,
  type FieldError,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { validateLegacyIp } from "../../meta/validation/ip.ts";
import { dns1123Subdomain, looseSubdomain, validateName } from "../../meta/validation/names.ts";
import type { HostAlias, PodDNSConfig, PodSpec } from "./schema.ts";

/** The limits of C libraries for resolv.conf. */
const NAMESERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCH_CHARACTERS_MAX = 2048;

export function validateDns({ dnsPolicy, dnsConfig }: PodSpec, path: string): readonly FieldError[] {
  if (dnsPolicy === "None") {
    if (dnsConfig === undefined) return [requiredField(path, "must provide `dnsConfig` when `dnsPolicy` is None")];
    if ((dnsConfig.nameservers ?? []).length === 0) {
      const detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
      return [requiredField(child(path, "nameservers"), detail)];
    }
  }
  return dnsConfig === undefined ? [] : validateDnsConfig(dnsConfig, path);
}

function validateDnsConfig(config: PodDNSConfig, path: string): readonly FieldError[] {
  const { nameservers = [], searches = [], options = [] } = config;
  const [servers, search] = [child(path, "nameservers"), child(path, "searches")];
  const errors: FieldError[] = [];
  if (nameservers.length > NAMESERVERS_MAX) {
    errors.push(invalidField(servers, nameservers, `must not have more than ${NAMESERVERS_MAX} nameservers`));
  }
  errors.push(...validateEach(nameservers, (server, i) => validateLegacyIp(server, index(servers, i))));
  if (searches.length > SEARCHES_MAX) {
    errors.push(invalidField(search, searches, `must not have more than ${SEARCHES_MAX} search paths`));
  }
  if (Buffer.byteLength(searches.join(" ")) > SEARCH_CHARACTERS_MAX) {
    const detail = `must not have more than ${SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list`;
    errors.push(invalidField(search, searches, detail));
  }
  for (const [i, domain] of searches.entries()) {
    if (errors.length >= errorsMax) break;
    if (domain !== ".") errors.push(...validateName(index(search, i), domain.replace(/\.$/, ""), looseSubdomain));
  }
  for (const [i, { name = "" }] of options.entries()) {
    if (errors.length >= errorsMax) break;
    if (name === "") errors.push(requiredField(index(child(path, "options"), i), "must not be empty"));
  }
  return errors;
}

export function validateHostAliases(aliases: readonly HostAlias[], path: string): readonly FieldError[] {
  return validateEach(aliases, ({ ip, hostnames = [] }, i) => [
    ...validateLegacyIp(ip, child(index(path, i), "ip")),
    ...validateEach(hostnames, (name, nameIndex) =>
      validateName(index(child(index(path, i), "hostnames"), nameIndex), name, dns1123Subdomain),
    ),
  ]);
}
