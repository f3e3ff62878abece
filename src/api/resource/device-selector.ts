/** CEL expressions that select devices. */
import { compile, describeFailure, type Program } from "../../cel/cel.ts";
import { createEnvironment } from "../../cel/environment.ts";
import { toQuantity } from "../../cel/libraries/quantity.ts";
import { toSemver } from "../../cel/libraries/semver.ts";
import { EntryMap } from "../../cel/values/entry-map.ts";
import { ObjectValue } from "../../cel/values/object-value.ts";
import {
  type Bounds,
  boolType,
  dynType,
  formatType,
  mapType,
  objectType,
  opaqueType,
  stringType,
  type Type,
} from "../../cel/values/types.ts";
import { Failure, MapValue, typeOfValue, type Value } from "../../cel/values/value.ts";
import {
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  tooLong,
} from "../../schema/validation/field-error.ts";
import { nameFormats } from "../meta/validation/name-formats.ts";
import { validateList } from "./common-validation.ts";
import type { Device, DeviceAttribute, DeviceSelector } from "./schemas.ts";

const SELECTORS_MAX = 32;
const EXPRESSION_BYTES_MAX = 10 * 1024;
const COST_MAX = 1_000_000;

/** Attributes and capacities by domain, then by name; a device has at most 32 of them. */
const perDevice: Bounds = { maxElements: 32 };
const domain: Type = { ...stringType, maxElements: 63 };
const identifier: Type = { ...stringType, maxElements: 32 };
const attribute: Type = { ...dynType, maxElements: 64 };
const attributes: Type = { ...mapType(identifier, attribute, perDevice), memberSize: attribute };
const capacity: Type = { ...opaqueType("kubernetes.Quantity"), maxElements: 0 };
const capacities = mapType(identifier, capacity, perDevice);

const deviceType = objectType("kubernetes.DRADevice", {
  driver: { ...stringType, maxElements: 63 },
  attributes: mapType(domain, attributes, perDevice),
  capacity: mapType(domain, capacities, perDevice),
});

/** Versions are available, unlike in other new expressions. */
const environment = createEnvironment({ variables: { device: deviceType }, nameFormats, stored: true });

/** Expressions that are stored are not checked again. */
export function validateSelectors(
  selectors: readonly DeviceSelector[] | undefined,
  path: string,
  isStored: boolean,
): readonly FieldError[] {
  return validateList(selectors, SELECTORS_MAX, path, ({ cel }, at) =>
    cel === undefined
      ? [requiredField(`${at}.cel`)]
      : validateExpression(cel.expression, `${at}.cel.expression`, isStored),
  );
}

function validateExpression(expression: string, path: string, isStored: boolean): readonly FieldError[] {
  if (Buffer.byteLength(expression) > EXPRESSION_BYTES_MAX) return [tooLong(path, EXPRESSION_BYTES_MAX)];
  if (isStored) return [];
  const compiled = compileSelector(expression);
  if (typeof compiled === "string") return [invalidField(path, expression, compiled)];
  return compiled.estimate.max > COST_MAX ? [forbiddenField(path, "too complex, exceeds cost limit")] : [];
}

/** The program, or Kubernetes' text for why there is none. */
export function compileSelector(expression: string): Program | string {
  const compiled = compile(expression, environment);
  const { program } = compiled;
  if (program === undefined) return describeFailure(compiled, expression);
  const type = program.resultType;
  if (type.kind === "bool" || type.kind === "dyn") return program;
  return `must evaluate to ${formatType(boolType)} or the unknown type, not ${formatType(type)}`;
}

/** What expressions see of a device, as the value of their variable. Made once for all expressions of a device. */
export type SelectedDevice = { readonly value: Value } | { readonly error: string };

export function toSelectedDevice(driver: string, { attributes = {}, capacity = {} }: Device): SelectedDevice {
  const quantities = Object.entries(capacity).map(([name, { value }]) => [name, () => toQuantity(value)] as const);
  const values = Object.entries(attributes).map(
    ([name, attribute]) => [name, () => toAttributeValue(name, attribute)] as const,
  );
  try {
    const fields = new Map<string, Value>([
      ["driver", driver],
      ["attributes", new DomainMap(driver, values)],
      ["capacity", new DomainMap(driver, quantities)],
    ]);
    return { value: new ObjectValue(deviceType, fields) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { error: error.message };
  }
}

export interface Selection {
  /** Whether the expression selects the device, or why it cannot be evaluated. */
  readonly result: boolean | string;
  readonly cost: number;
}

export function selectDevice(program: Program, device: SelectedDevice): Selection {
  if ("error" in device) return { result: device.error, cost: 0 };
  const { value, error, cost } = program.evaluate({ device: device.value }, { budget: COST_MAX });
  if (error !== undefined) return { result: error.message, cost };
  if (typeof value === "boolean") return { result: value, cost };
  const type = formatType(typeOfValue(value));
  return { result: `CEL result of type ${type} could not be converted to bool`, cost };
}

function toAttributeValue(name: string, { int, bool, string, version }: DeviceAttribute): Value {
  if (int !== undefined) return BigInt(int);
  if (bool !== undefined) return bool;
  if (string !== undefined) return string;
  if (version !== undefined) return toSemver(version);
  throw new Failure(`attribute ${name}: unsupported attribute value`);
}

/** Values by domain, then by name. A name without a domain has the driver's. Other domains are empty, not missing. */
class DomainMap extends MapValue {
  readonly type = { kind: "map", key: stringType, value: dynType } as const;
  readonly #domains: ReadonlyMap<string, EntryMap>;

  constructor(driver: string, values: readonly (readonly [string, () => Value])[]) {
    super();
    const entries = new Map<string, (readonly [string, Value])[]>();
    for (const [qualified, value] of values) {
      const slash = qualified.indexOf("/");
      const domain = slash < 0 ? driver : qualified.slice(0, slash);
      const list = entries.get(domain) ?? [];
      list.push([qualified.slice(slash + 1), value()]);
      entries.set(domain, list);
    }
    this.#domains = new Map([...entries].map(([domain, list]) => [domain, EntryMap.of(list)]));
  }

  get size(): number {
    return this.#domains.size;
  }

  get(key: Value): Value | undefined {
    return typeof key === "string" ? (this.#domains.get(key) ?? EntryMap.empty) : undefined;
  }

  override has(key: Value): boolean {
    return typeof key === "string" && this.#domains.has(key);
  }

  keys(): Iterable<Value> {
    return this.#domains.keys();
  }
}
