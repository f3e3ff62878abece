/**
 * Field management of writes through Scale. As in Kubernetes only the managers of the replica count take part: their
 * entries are read as entries of the Scale, and what the write makes of these goes back into those of the object. So an
 * update records nothing while the count has no manager, and entries that it adds have no time.
 */
import type { Scale } from "../../api/autoscaling/scale/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { svcGroup } from "../../api/scheme.ts";
import {
  difference,
  type FieldSet,
  intersection,
  isEmptySet,
  noFields,
  setOfPaths,
} from "../../schema/apply/fieldpath/field-set.ts";
import { fieldElement } from "../../schema/apply/fieldpath/path-element.ts";
import type { ManagedFields } from "../../schema/apply/managers.ts";
import type { Registry } from "../registry.ts";
import { applyConflict } from "./apply-conflict.ts";
import { BEFORE_FIRST, identityOf, type Manager, versionOf, withFields } from "./entries.ts";

const SCALE_API_VERSION = "autoscaling/v1";
const SCALE_PATH = ["spec", "replicas"].map(fieldElement);

/** The managers of the count, by their identity as managers of the Scale. */
type Claims = Map<string, Manager>;

/** What a configuration has of a Scale's spec. */
export interface AppliedScale {
  readonly applied: number | undefined;
  readonly hasSpec: boolean;
}

export class ScaleManagers<T extends ApiObject> {
  readonly #registry: Registry<T>;
  readonly #managers: ManagedFields<Manager>;
  readonly #claims: Claims;

  constructor(registry: Registry<T>, managers: ManagedFields<Manager>) {
    this.#registry = registry;
    this.#managers = managers;
    this.#claims = new Map();
    for (const manager of managers.values()) {
      const count = this.#countIn(manager.version);
      if (count === undefined || isEmptySet(intersection(manager.fields, count))) continue;
      addClaim(this.#claims, manager);
    }
  }

  /** `writer` has no fields yet. Returns the managers of the object after an update of the count. */
  update(writer: Manager, before: number, after: number): ManagedFields<Manager> {
    if (this.#claims.size === 0 || before === after) return this.#toObject(writer, this.#claims);
    // A Scale without replicas is one with 0: the count has no manager then.
    return this.#toObject(writer, after === 0 ? new Map() : addClaim(new Map(), writer));
  }

  /** Returns the count and the managers after an apply. Throws a 409 where another manager has another count. */
  apply(
    writer: Manager,
    before: number,
    { applied, hasSpec }: AppliedScale,
    force: boolean,
  ): { readonly count: number; readonly managers: ManagedFields<Manager> } {
    const claims = new Map(this.#claims);
    if (claims.size === 0 && before !== 0) {
      addClaim(claims, { ...writer, manager: BEFORE_FIRST, operation: "Update", applied: false });
    }
    const own = identityOf(writer);
    const hadOwn = claims.delete(own);
    const others = claims.size;
    // A count of 0 is absent from the live Scale, so that any applied one is another.
    const isChange = applied !== undefined && (before === 0 || applied !== before);
    if (isChange && !force && others > 0) {
      throw applyConflict(
        [...claims.keys()].map((manager) => ({ manager, path: SCALE_PATH })),
        claims,
      );
    }
    if (isChange) claims.clear();
    // An empty spec keeps the entry that there is, but not the count.
    if (applied !== undefined || (hadOwn && hasSpec)) addClaim(claims, writer);
    const isGivenUp = applied === undefined && hadOwn && others === 0;
    return { count: applied ?? (isGivenUp ? 0 : before), managers: this.#toObject(writer, claims) };
  }

  #toObject(writer: Manager, claims: ReadonlyMap<string, Manager>): ManagedFields<Manager> {
    const left = new Map(claims);
    const result = new Map<string, Manager>();
    for (const [identity, manager] of this.#managers) {
      const count = this.#countIn(manager.version);
      // Managers of a version that is no longer served are dropped.
      if (count === undefined) continue;
      if (isEmptySet(count) || isEmptySet(intersection(manager.fields, count)) || left.delete(identity)) {
        result.set(identity, manager);
        continue;
      }
      const fields = difference(manager.fields, count);
      if (!isEmptySet(fields)) result.set(identity, withFields(manager, fields));
    }
    for (const [identity, claim] of left) {
      const { apiVersion, version } = writer;
      const fields = this.#countIn(version) ?? noFields;
      const time = this.#managers.get(identity)?.time;
      result.set(identity, { ...withFields(claim, fields), apiVersion, version, time });
    }
    return result;
  }

  /** Empty where objects of the version have no Scale; undefined for a version that is not served. */
  #countIn(version: string): FieldSet | undefined {
    const kinds = [this.#registry.kind, ...this.#registry.versions()];
    const kind = kinds.find((each) => `${svcGroup(each.group)}/${each.version}` === version);
    if (kind === undefined) return undefined;
    const path = kind.subresources.find(({ name }) => name === "scale")?.view?.managedPath;
    return setOfPaths(...(path === undefined ? [] : [path.map(fieldElement)]));
  }
}

/** The replica count of a Scale. */
export function countOf({ spec }: Scale): number {
  return spec?.replicas ?? 0;
}

function addClaim(claims: Claims, manager: Manager): Claims {
  const claim = { ...manager, apiVersion: SCALE_API_VERSION, version: versionOf(SCALE_API_VERSION) };
  return claims.set(identityOf(claim), claim);
}
