/** `matchAttribute`: all devices of the requests have the same value of an attribute. */
import type { Device, DeviceAttribute, DeviceConstraint } from "../../../api/resource/schemas.ts";
import type { DeviceRequestOption } from "./device-requests.ts";

export class MatchAttribute {
  readonly #requests: ReadonlySet<string>;
  readonly #attribute: string;
  #value: DeviceAttribute | undefined;
  #count = 0;

  constructor({ requests = [] }: DeviceConstraint, attribute: string) {
    this.#requests = new Set(requests);
    this.#attribute = attribute;
  }

  /** Whether the device has the value of the others; it counts from then on. */
  add(request: DeviceRequestOption, driver: string, device: Device): boolean {
    if (!this.#appliesTo(request)) return true;
    const value = findAttribute(this.#attribute, driver, device);
    if (value === undefined) return false;
    if (this.#count === 0) this.#value = value;
    else if (!isEqual(value, this.#value ?? {})) return false;
    this.#count++;
    return true;
  }

  /** Reverts `add`. */
  remove(request: DeviceRequestOption): void {
    if (this.#appliesTo(request)) this.#count--;
  }

  #appliesTo({ name, parent }: DeviceRequestOption): boolean {
    if (this.#requests.size === 0) return true;
    if (parent === undefined) return this.#requests.has(name);
    return this.#requests.has(parent) || this.#requests.has(`${parent}/${name}`);
  }
}

/** An attribute of the driver's own domain may have a name without it. */
function findAttribute(name: string, driver: string, { attributes = {} }: Device): DeviceAttribute | undefined {
  if (Object.hasOwn(attributes, name)) return attributes[name];
  const slash = name.indexOf("/");
  const own = name.slice(slash + 1);
  return slash >= 0 && name.slice(0, slash) === driver && Object.hasOwn(attributes, own) ? attributes[own] : undefined;
}

function isEqual(a: DeviceAttribute, b: DeviceAttribute): boolean {
  if (a.string !== undefined) return a.string === b.string;
  if (a.int !== undefined) return b.int !== undefined && BigInt(a.int) === BigInt(b.int);
  if (a.bool !== undefined) return a.bool === b.bool;
  return a.version !== undefined && a.version === b.version;
}
