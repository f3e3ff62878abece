/** Flags about a node: labels, taints, reserved memory, CPU sets, request headers. */
import { ValueError, type ValueType } from "../flag.ts";
import { type Pairs, pairs } from "./map.ts";
import { isQuantity } from "./quantity.ts";
import { pattern } from "./text.ts";

const allowedPrefixes = ["svclet.svc.io", "node.svc.io"];
const allowedKeys = [
  "beta.svc.io/arch",
  "beta.svc.io/instance-type",
  "beta.svc.io/os",
  "failure-domain.beta.svc.io/region",
  "failure-domain.beta.svc.io/zone",
  "svc.io/arch",
  "svc.io/hostname",
  "svc.io/os",
  "node.svc.io/instance-type",
  "topology.svc.io/region",
  "topology.svc.io/zone",
];

/** The label key for a key with a Kubernetes prefix. */
function normaliseLabelKey(key: string): string {
  return key
    .replace(/^kubelet\.kubernetes\.io(?=\/)/, "svclet.svc.io")
    .replace(/(?:kubernetes|k8s)\.io(?=\/)/, "svc.io");
}

/** True for keys outside the `svc.io` namespace and for those within that a node may set on itself. */
export function mayNodeSetLabel(key: string): boolean {
  const normalised = normaliseLabelKey(key);
  const slash = normalised.indexOf("/");
  const domain = slash < 0 ? "" : normalised.slice(0, slash);
  if (domain !== "svc.io" && !domain.endsWith(".svc.io")) return true;
  if (allowedKeys.includes(normalised)) return true;
  return allowedPrefixes.some((prefix) => domain === prefix || domain.endsWith(`.${prefix}`));
}

const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

function isLabelKey(key: string): boolean {
  const [first = "", second, ...rest] = key.split("/");
  if (rest.length > 0) return false;
  if (second === undefined) return namePart.test(first);
  return namePart.test(second) && first.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(first);
}

function isLabelValue(value: string): boolean {
  return value === "" || namePart.test(value);
}

export const nodeLabels: ValueType<Pairs> = {
  ...pairs({
    allowed:
      "comma-separated labels key=value; keys within svc.io must start with svclet.svc.io/ or node.svc.io/, " +
      `or be one of ${allowedKeys.join(", ")}`,
    accepts: (key, value) => isLabelKey(key) && isLabelValue(value) && mayNodeSetLabel(key),
    sample: "disk=ssd,node.svc.io/rack=r7,topology.svc.io/zone=z1",
    wrong: "svc.io/admin=yes",
  }),
};

export interface NodeTaint {
  readonly key: string;
  readonly value: string;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

const effects: readonly string[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** `key=value:Effect`, comma separated; the value may be empty. */
export const taints: ValueType<readonly NodeTaint[]> = {
  name: "string",
  allowed: `comma-separated taints key=value:effect, each effect one of ${effects.join(", ")}`,
  sample: "dedicated=db:NoSchedule,slow=:PreferNoSchedule",
  wrong: "dedicated=db:Never",
  parse(text) {
    return (text === "" ? [] : text.split(",")).map((part) => {
      const match = /^([^=:]+)(?:=([^:]*))?:(.+)$/.exec(part.trim());
      const [key = "", value = "", effect = ""] = match?.slice(1) ?? [];
      if (!isLabelKey(key) || !isLabelValue(value) || !effects.includes(effect)) {
        throw new ValueError(
          `${JSON.stringify(part)} must be key=value:effect, the effect one of ${effects.join(", ")}`,
        );
      }
      return { key, value, effect: effect as NodeTaint["effect"] };
    });
  },
  print: (list) => list.map(({ key, value, effect }) => `${key}=${value}:${effect}`).join(","),
  add: (previous, next) => [...previous, ...next],
  fromJson(json) {
    const list = json as readonly { key?: string; value?: string; effect?: string }[];
    return list.flatMap(({ key = "", value = "", effect = "" }) => this.parse(`${key}=${value}:${effect}`));
  },
};

export interface MemoryReservation {
  readonly numaNode: number;
  readonly limits: Pairs;
}

/** `0:memory=1Gi,hugepages-1M=2Gi`; several nodes with `;` between, or the flag repeated. */
export const reservedMemory: ValueType<readonly MemoryReservation[]> = {
  name: "string",
  allowed: "NUMA:memory=quantity,hugepages-SIZE=quantity, several with ; between",
  sample: "0:memory=1Gi,hugepages-1M=2Gi;1:memory=2Gi",
  wrong: "memory=1Gi",
  parse(text) {
    return (text === "" ? [] : text.split(";")).map((part) => {
      const match = /^(\d+):(.+)$/.exec(part.trim());
      const limits = match === null ? [] : match[2]!.split(",").map((pair) => pair.split("=") as [string, string]);
      const right = limits.every(
        ([resource, amount = ""]) => /^(memory|hugepages-\w+)$/.test(resource) && isQuantity(amount),
      );
      if (match === null || !right) throw new ValueError(`${JSON.stringify(part)} must be ${this.allowed}`);
      return { numaNode: Number(match[1]), limits: Object.fromEntries(limits) };
    });
  },
  print: (list) =>
    list
      .map(({ numaNode, limits }) => {
        const amounts = Object.entries(limits).map(([resource, amount]) => `${resource}=${amount}`);
        return `${numaNode}:${amounts.join(",")}`;
      })
      .join(";"),
  add: (previous, next) => [...previous, ...next],
  fromJson(json) {
    return this.parse(this.print(json as readonly MemoryReservation[]));
  },
};

/** `0-3,8`: CPU numbers and ranges, as the kernel writes them. */
export const cpuSet: ValueType<string> = pattern(
  "CPU numbers and ranges such as 0-3,8",
  (value) =>
    value === "" ||
    value.split(",").every((part) => {
      const match = /^(\d+)(?:-(\d+))?$/.exec(part);
      return match !== null && (match[2] === undefined || Number(match[1]) <= Number(match[2]));
    }),
  "0-3,8",
  { wrong: "3-0" },
);

/** An absolute cgroup name, or nothing. */
export const cgroupPath: ValueType<string> = pattern(
  "an absolute cgroup name such as /system.slice, or nothing",
  (value) => value === "" || value.startsWith("/"),
  "/system.slice",
  { wrong: "system.slice" },
);

/** Allowed sysctls: names, or prefixes that end in `*`. */
export function isSysctlPattern(value: string): boolean {
  return (
    value.length <= 253 &&
    /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?\*?$/.test(value) &&
    value !== ""
  );
}

export type Headers = Readonly<Record<string, readonly string[]>>;

/** `name:value` request headers; a repeated name adds a value. */
export const headers: ValueType<Headers> = {
  name: "strings",
  allowed: "comma-separated name:value headers",
  sample: "x-site:edge-7,x-site:backup",
  wrong: "x-site",
  parse(text) {
    const all: Record<string, readonly string[]> = {};
    for (const part of text === "" ? [] : text.split(",")) {
      const at = part.indexOf(":");
      const name = part.slice(0, at).trim();
      if (at < 1 || !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) {
        throw new ValueError(`${JSON.stringify(part)} must be a header name:value`);
      }
      all[name] = [...(all[name] ?? []), part.slice(at + 1).trim()];
    }
    return all;
  },
  print: (all) =>
    Object.entries(all)
      .flatMap(([name, values]) => values.map((value) => `${name}:${value}`))
      .join(","),
  fromJson: (json) => json as Headers,
  add(previous, next) {
    const all: Record<string, readonly string[]> = { ...previous };
    for (const [name, values] of Object.entries(next)) all[name] = [...(all[name] ?? []), ...values];
    return all;
  },
};
