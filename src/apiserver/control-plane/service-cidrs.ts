/** Sets the condition Ready of ServiceCIDRs. A finalizer keeps a deleted one while services need its addresses. */
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import type { IPAddress } from "../../api/networking/ip-address/schema.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import type { ServiceCIDR } from "../../api/networking/service-cidr/schema.ts";
import type { Registries } from "../../registry/registries.ts";
import { MANAGER_LABEL } from "../../registry/service-allocation/addresses.ts";
import { guaranteedUpdate } from "../../registry/write/guaranteed-update.ts";
import { type Cidr, contains, type Ip, parseCidr, parseIp } from "../../std/net/ip.ts";
import { ignoreConflict, systemScope } from "./ensure.ts";

const FINALIZER = "networking.k8s.io/service-cidr-finalizer";

const IN_USE =
  "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

type Conditions = NonNullable<NonNullable<ServiceCIDR["status"]>["conditions"]>;
type Condition = Conditions[number];

export async function reconcileServiceCidrs(registries: Registries, signal: AbortSignal): Promise<void> {
  const registry = registries.of(serviceCIDRKind);
  const scope = { ...systemScope("", signal), group: registry.kind.group };
  const { items } = await registry.objects.list(registry.prefix(scope));
  for (const serviceCidr of items) {
    const name = serviceCidr.metadata?.name ?? "";
    const isDeleted = serviceCidr.metadata?.deletionTimestamp !== undefined;
    const inUse = isDeleted && (await isInUse(registries, serviceCidr, items));
    const next = (current: ServiceCIDR): ServiceCIDR => withStatus(current, inUse, registry.timestamp());
    if (next(serviceCidr) === serviceCidr) continue;
    await ignoreConflict(guaranteedUpdate({ registry, scope, name, options: {} }, next));
  }
}

/** Returns the same object when nothing has to change. */
function withStatus(block: ServiceCIDR, held: boolean, now: string): ServiceCIDR {
  const finalizers = block.metadata?.finalizers ?? [];
  const hasFinalizer = finalizers.includes(FINALIZER);
  if (block.metadata?.deletionTimestamp === undefined) {
    const ready = { type: "Ready", status: "True", reason: "", message: "Kubernetes Service CIDR is ready" } as const;
    const protectedBlock = hasFinalizer ? block : withFinalizers(block, [...finalizers, FINALIZER]);
    return isReady(block) ? protectedBlock : withCondition(protectedBlock, ready, now);
  }
  if (!hasFinalizer) return block;
  if (!held) {
    return withFinalizers(
      block,
      finalizers.filter((each) => each !== FINALIZER),
    );
  }
  const terminating = { type: "Ready", status: "False", reason: "Terminating", message: IN_USE } as const;
  const isReported = block.status?.conditions?.some(
    ({ type, reason }) => type === "Ready" && reason === terminating.reason,
  );
  return isReported === true ? block : withCondition(block, terminating, now);
}

function isReady({ status }: ServiceCIDR): boolean {
  return status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") === true;
}

function withFinalizers(block: ServiceCIDR, finalizers: readonly string[]): ServiceCIDR {
  return { ...block, metadata: { ...block.metadata, finalizers } };
}

function withCondition(
  block: ServiceCIDR,
  condition: Omit<Condition, "lastTransitionTime">,
  lastTransitionTime: string,
): ServiceCIDR {
  const others = (block.status?.conditions ?? []).filter(({ type }) => type !== condition.type);
  return { ...block, status: { ...block.status, conditions: [...others, { ...condition, lastTransitionTime }] } };
}

async function isInUse(registries: Registries, block: ServiceCIDR, all: readonly ServiceCIDR[]): Promise<boolean> {
  const registry = registries.of(ipAddressKind);
  const { items } = await registry.objects.list(registry.objects.prefix());
  const others = all.filter((each) => each !== block && each.metadata?.deletionTimestamp === undefined);
  return items.some((address) => {
    const ip = addressOf(address);
    return ip !== undefined && containsAddress(block, ip) && !others.some((other) => containsAddress(other, ip));
  });
}

/** Only addresses that the API server allocates count, not IPAddress objects of other managers. */
function addressOf({ metadata }: IPAddress): Ip | undefined {
  return metadata?.labels?.[MANAGER_LABEL] === undefined ? undefined : parseIp(metadata.name ?? "");
}

function containsAddress({ spec }: ServiceCIDR, ip: Ip): boolean {
  const blocks = (spec?.cidrs ?? []).map(parseCidr).filter((cidr): cidr is Cidr => cidr !== undefined);
  return blocks.some((cidr) => contains(cidr, ip));
}
