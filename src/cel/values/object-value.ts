/** Objects that expressions create: `Object.spec{replicas: 1}`. */
import { formatType, type Type } from "./types.ts";
import { checkWeight, equal, MapValue, type Value, weightOf } from "./value.ts";

export class ObjectValue extends MapValue {
  readonly type: Type;
  readonly fields: ReadonlyMap<string, Value>;
  override readonly weight: number;

  constructor(type: Type, fields: ReadonlyMap<string, Value>) {
    super();
    this.type = type;
    this.fields = fields;
    let weight = 1;
    for (const value of fields.values()) weight += 1 + weightOf(value);
    this.weight = checkWeight(weight);
  }

  get typeName(): string {
    return formatType(this.type);
  }

  get size(): number {
    return this.fields.size;
  }

  get(key: Value): Value | undefined {
    return typeof key === "string" ? this.fields.get(key) : undefined;
  }

  keys(): Iterable<Value> {
    return this.fields.keys();
  }

  override equals(other: MapValue): boolean {
    if (!(other instanceof ObjectValue) || other.typeName !== this.typeName || other.size !== this.size) return false;
    for (const [name, value] of this.fields) {
      const theirs = other.fields.get(name);
      if (theirs === undefined || !equal(value, theirs)) return false;
    }
    return true;
  }
}
