import t from "tap";
import { builtinKinds } from "../builtin.ts";
import type { ApiObject, Kind } from "../kind.ts";
import { createValidateGated } from "./gated-validation.ts";

const kindOf = (plural: string): Kind => builtinKinds.find((kind) => kind.plural === plural)!;
const set = (gate: string, value: boolean) => ({ has: (name: string) => (name === gate ? value : !value) });

interface Case {
  readonly gate: string;
  /** The value with which the object is invalid. */
  readonly value: boolean;
  readonly resource: string;
  readonly object: object;
  readonly errors: readonly (readonly [field: string, detail: RegExp])[];
}

const pod = (spec: object): object => ({ spec });
const template = (spec: object): object => ({ spec: { template: { spec } } });

const cases: readonly Case[] = [
  {
    gate: "RelaxedEnvironmentVariableValidation",
    value: false,
    resource: "pods",
    object: pod({ containers: [{ env: [{ name: "OK" }, { name: "1 a" }], envFrom: [{ prefix: "2" }] }] }),
    errors: [
      ["spec.containers[0].env[1].name", /must not start with a digit/],
      ["spec.containers[0].envFrom[0].prefix", /must not start with a digit/],
    ],
  },
  {
    gate: "VolumeAttributesClass",
    value: true,
    resource: "pods",
    object: pod({
      volumes: ["gold", "", "Not/valid"].map((volumeAttributesClassName) => ({
        ephemeral: { volumeClaimTemplate: { spec: { volumeAttributesClassName } } },
      })),
    }),
    errors: [["spec.volumes[2].ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName", /RFC 1123 subdomain/]],
  },
  {
    gate: "RelaxedDNSSearchValidation",
    value: false,
    resource: "deployments",
    object: template({ dnsConfig: { searches: ["a.example.", ".", "_a.example"] } }),
    errors: [
      ["spec.template.spec.dnsConfig.searches[1]", /RFC 1123 subdomain/],
      ["spec.template.spec.dnsConfig.searches[2]", /RFC 1123 subdomain/],
    ],
  },
  {
    gate: "SELinuxMount",
    value: false,
    resource: "deployments",
    object: template({ securityContext: { seLinuxChangePolicy: "MountOption" } }),
    errors: [["spec.template.spec.securityContext.seLinuxChangePolicy", /^supported values: "Recursive"$/]],
  },
  {
    gate: "StrictIPCIDRValidation",
    value: true,
    resource: "pods",
    object: pod({ hostAliases: [{ ip: "010.1.1.1" }], dnsConfig: { nameservers: ["::ffff:1.2.3.4", "x"] } }),
    errors: [
      ["spec.hostAliases[0].ip", /must not have leading 0s/],
      ["spec.dnsConfig.nameservers[0]", /must not be an IPv4-mapped IPv6 address/],
    ],
  },
  {
    gate: "StrictIPCIDRValidation",
    value: true,
    resource: "services",
    object: { spec: { clusterIPs: ["None"], externalIPs: ["1.2.3.04"], loadBalancerSourceRanges: ["10.0.0.1/8"] } },
    errors: [
      ["spec.externalIPs[0]", /leading 0s/],
      ["spec.loadBalancerSourceRanges[0]", /bits set beyond the prefix length/],
    ],
  },
  {
    gate: "StrictIPCIDRValidation",
    value: true,
    resource: "pods",
    object: { status: { podIPs: [{ ip: "10.0.0.1" }, { ip: "::ffff:10.0.0.2" }], hostIPs: [{ ip: "010.0.0.1" }] } },
    errors: [
      ["status.podIPs[1]", /must not be an IPv4-mapped IPv6 address/],
      ["status.hostIPs[0]", /leading 0s/],
    ],
  },
  ...["services", "ingresses"].map(
    (resource): Case => ({
      gate: "StrictIPCIDRValidation",
      value: true,
      resource,
      object: { status: { loadBalancer: { ingress: [{ ip: "2001:DB8::1" }, { ip: "10.0.0.01" }] } } },
      errors: [["status.loadBalancer.ingress[1].ip", /leading 0s/]],
    }),
  ),
  {
    gate: "StrictIPCIDRValidation",
    value: true,
    resource: "networkpolicies",
    object: { spec: { ingress: [{ from: [{ ipBlock: { cidr: "10.0.0.1/8", except: ["10.1.0.0/16"] } }] }] } },
    errors: [["spec.ingress[0].from[0].ipBlock.cidr", /bits set beyond/]],
  },
  {
    gate: "StrictIPCIDRValidation",
    value: true,
    resource: "endpointslices",
    object: { endpoints: [{ addresses: ["10.00.0.1"] }, { addresses: ["host.example"] }] },
    errors: [["endpoints[0].addresses[0]", /leading 0s/]],
  },
];

for (const { gate, value, resource, object, errors } of cases) {
  t.test(`${gate}=${value} rejects values of ${resource}`, async (t) => {
    const kind = kindOf(resource);
    const validate = createValidateGated(kind, set(gate, value))!;
    const found = validate(object as ApiObject, undefined);
    t.match(
      found.map(({ field, detail }) => [field, detail]),
      errors,
    );
    t.equal(found.length, errors.length);
    t.same(validate(object as ApiObject, object as ApiObject), [], "stored values are kept");
    t.same(createValidateGated(kind, set(gate, !value))?.(object as ApiObject, undefined) ?? [], []);
  });
}

t.test(
  "seLinuxChangePolicy has one of two values, and only Recursive at first while SELinuxMount is off",
  async (t) => {
    const object = (seLinuxChangePolicy: string) => pod({ securityContext: { seLinuxChangePolicy } }) as ApiObject;
    const errors = (isOn: boolean, next: string, previous?: string) =>
      createValidateGated(kindOf("pods"), set("SELinuxMount", isOn))!(
        object(next),
        previous === undefined ? undefined : object(previous),
      ).map(({ type, detail }) => [type, detail]);
    const all = [["FieldValueNotSupported", 'supported values: "MountOption", "Recursive"']];
    for (const wrong of ["Other", ""]) {
      t.same(errors(true, wrong), all, wrong);
      t.same(errors(false, wrong), [["FieldValueNotSupported", 'supported values: "Recursive"']], wrong);
      t.same(errors(false, wrong, "Recursive"), all, wrong);
    }
    t.same(errors(false, "Recursive"), []);
    t.same(errors(false, "MountOption", "Recursive"), []);
  },
);
