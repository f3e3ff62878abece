/** Rules for network policies: ports, peers, IP blocks. */
import {
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { contains, parseCidr } from "../../../std/net/ip.ts";
import { cidrWarnings, validateLegacyCidr } from "../../meta/validation/ip.ts";
import { type LabelSelectorValidationOptions, validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { portName, portNumber } from "../../meta/validation/names.ts";
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from "./schema.ts";

const POLICY_TYPES: readonly string[] = ["Ingress", "Egress"];
const PROTOCOLS: readonly string[] = ["TCP", "UDP", "SCTP"];

/** An ingress or egress rule with its path. */
interface Rule {
  readonly at: string;
  readonly ports: readonly NetworkPolicyPort[];
  readonly peers: readonly NetworkPolicyPeer[];
  readonly peersAt: string;
}

/** The rules that have ports or peers, one at a time: a policy may have tens of thousands. */
function* rulesOf({ spec }: NetworkPolicy): Generator<Rule, void> {
  for (const [i, { ports = [], from = [] }] of (spec?.ingress ?? []).entries()) {
    if (ports.length === 0 && from.length === 0) continue;
    const at = index("spec.ingress", i);
    yield { at, ports, peers: from, peersAt: child(at, "from") };
  }
  for (const [i, { ports = [], to = [] }] of (spec?.egress ?? []).entries()) {
    if (ports.length === 0 && to.length === 0) continue;
    const at = index("spec.egress", i);
    yield { at, ports, peers: to, peersAt: child(at, "to") };
  }
}

export function validateNetworkPolicy(policy: NetworkPolicy, previous?: NetworkPolicy): readonly FieldError[] {
  const before = validateLabelSelector(previous?.spec?.podSelector, "");
  // Accepts the invalid selector of a stored policy.
  const lenient: LabelSelectorValidationOptions = { allowInvalidValues: before.length > 0 };
  return [
    ...validateLabelSelector(policy.spec?.podSelector, "spec.podSelector", lenient),
    ...validateEach(rulesOf(policy), ({ at, ports, peers, peersAt }) => [
      ...validateEach(ports, (port, i) => validatePort(port, index(child(at, "ports"), i))),
      ...validateEach(peers, (peer, i) => validatePeer(peer, index(peersAt, i), lenient)),
    ]),
    ...validateTypes(policy.spec?.policyTypes ?? []),
  ];
}

function validatePort(rule: NetworkPolicyPort, path: string): readonly FieldError[] {
  const { protocol } = rule;
  const isSupported = protocol === undefined || PROTOCOLS.includes(protocol);
  return [
    ...(isSupported ? [] : [notSupported(child(path, "protocol"), protocol, PROTOCOLS)]),
    ...validatePortRange(rule, path),
  ];
}

function validatePortRange({ port, endPort }: NetworkPolicyPort, path: string): readonly FieldError[] {
  const at = child(path, "port");
  const end = (detail: string): FieldError => invalidField(child(path, "endPort"), endPort, detail);
  if (port === undefined) {
    return endPort === undefined ? [] : [end("may not be specified when `port` is not specified")];
  }
  if (typeof port === "string") {
    return [
      ...(endPort === undefined ? [] : [end("may not be specified when `port` is non-numeric")]),
      ...portName(port).map((problem) => invalidField(at, port, problem)),
    ];
  }
  const errors = portNumber(port).map((problem) => invalidField(at, port, problem));
  if (endPort === undefined) return errors;
  // Kubernetes reports the value of the start.
  const short = invalidField(child(path, "endPort"), port, "must be greater than or equal to `port`");
  const below = endPort < port ? [short] : [];
  return [...errors, ...below, ...portNumber(endPort).map(end)];
}

function validatePeer(
  peer: NetworkPolicyPeer,
  path: string,
  rules: LabelSelectorValidationOptions,
): readonly FieldError[] {
  const { podSelector, namespaceSelector, ipBlock } = peer;
  const selects = podSelector !== undefined || namespaceSelector !== undefined;
  const errors = [
    ...validateLabelSelector(podSelector, child(path, "podSelector"), rules),
    ...validateLabelSelector(namespaceSelector, child(path, "namespaceSelector"), rules),
    ...(ipBlock === undefined ? [] : validateBlock(ipBlock, child(path, "ipBlock"))),
  ];
  if (!selects && ipBlock === undefined) errors.push(requiredField(path, "must specify a peer"));
  if (selects && ipBlock !== undefined) {
    errors.push(forbiddenField(path, "may not specify both ipBlock and another peer"));
  }
  return errors;
}

function validateBlock({ cidr, except = [] }: IPBlock, path: string): readonly FieldError[] {
  if (cidr === "") return [requiredField(child(path, "cidr"))];
  const errors = [...validateLegacyCidr(cidr, child(path, "cidr"))];
  const outer = parseCidr(cidr);
  if (outer === undefined) return errors;
  for (const [i, text] of except.entries()) {
    if (errors.length >= errorsMax) break;
    const at = index(child(path, "except"), i);
    errors.push(...validateLegacyCidr(text, at));
    const inner = parseCidr(text);
    if (inner === undefined) continue;
    const within = contains(outer, { family: inner.family, value: inner.network });
    if (within && outer.prefixLength < inner.prefixLength) continue;
    errors.push(invalidField(at, text, "must be a strict subset of `cidr`"));
  }
  return errors;
}

function validateTypes(types: readonly string[]): readonly FieldError[] {
  const path = "spec.policyTypes";
  if (types.length > POLICY_TYPES.length) {
    return [invalidField(path, types, "may not specify more than two policyTypes")];
  }
  return validateEach(types, (type, i) =>
    POLICY_TYPES.includes(type) ? [] : [notSupported(index(path, i), type, POLICY_TYPES)],
  );
}

/** Warnings for IP blocks that are not canonical. */
export function networkPolicyWarnings(policy: NetworkPolicy): readonly string[] {
  const warnings: string[] = [];
  for (const { peers, peersAt } of rulesOf(policy)) {
    for (const [i, { ipBlock }] of peers.entries()) {
      if (ipBlock === undefined) continue;
      const path = child(index(peersAt, i), "ipBlock");
      warnings.push(...cidrWarnings(ipBlock.cidr, child(path, "cidr")));
      for (const [j, text] of (ipBlock.except ?? []).entries()) {
        warnings.push(...cidrWarnings(text, index(child(path, "except"), j)));
      }
    }
  }
  return warnings;
}
