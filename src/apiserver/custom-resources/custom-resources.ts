/** The custom resources that are served: the kinds of all established definitions. */

import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { isConditionTrue } from "../../api/apiextensions/custom-resource-definition/status.ts";
import type { Kind } from "../../api/kind.ts";
import type { Registries } from "../../registry/registries.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import type { Logger } from "../../std/log/logger.ts";
import { type ConversionDeps, createConversionWebhook } from "./conversion/conversion-webhook.ts";
import { type DefinitionState, ServedKind } from "./served-kind.ts";

/** A served definition. */
interface ServedDefinition {
  readonly definition: CustomResourceDefinition;
  readonly storageName: string;
  readonly versions: readonly ServedKind[];
}

export interface CustomResourcesDeps {
  readonly registries: Registries;
  readonly conversion: ConversionDeps;
  readonly log: Logger;
}

export class CustomResources implements AsyncDisposable {
  readonly #registries: Registries;
  readonly #conversion: ConversionDeps;
  readonly #log: Logger;
  /** By definition name. */
  readonly #served = new Map<string, ServedDefinition>();
  readonly #byKind = new Map<Kind, ServedKind>();
  readonly #retiring = new Set<Promise<void>>();

  constructor({ registries, conversion, log }: CustomResourcesDeps) {
    this.#registries = registries;
    this.#conversion = conversion;
    this.#log = log;
  }

  /** `group` may be any alias. */
  find(group: string, version: string, plural: string): ServedKind | undefined {
    const kind = this.#registries.scheme.byResource(group, version, plural);
    return kind && this.#byKind.get(kind);
  }

  /** The names of the served definitions. */
  names(): readonly string[] {
    return [...this.#served.keys()];
  }

  /** Serves the kinds of the definition, in place of those of its previous state. */
  serve(definition: CustomResourceDefinition): void {
    const name = definition.metadata?.name ?? "";
    const previous = this.#served.get(name);
    if (previous !== undefined && definesSameKinds(previous.definition, definition)) {
      for (const served of previous.versions) served.state = definitionState(definition);
      return;
    }
    const storageName = `${definition.spec.group}/${definition.spec.names.plural}`;
    const kinds = this.#kindsOf(definition, previous?.versions ?? []);
    this.#registries.scheme.setCustomVersions(storageName, kinds);
    const versions = kinds.map((kind) => new ServedKind(kind, definitionState(definition), this.#registries));
    this.#served.set(name, { definition, storageName, versions });
    for (const served of versions) this.#byKind.set(served.kind, served);
    this.#retire(previous);
    this.#log
      .v(2)
      ?.info("Serving a custom resource", { name, versions: kinds.map(({ version }) => version).join(" ") });
  }

  withdraw(name: string): void {
    const before = this.#served.get(name);
    if (before === undefined) return;
    this.#served.delete(name);
    this.#registries.scheme.setCustomVersions(before.storageName, []);
    this.#retire(before);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#retiring);
  }

  /** The served kinds of a definition, without those that conflict with built-in kinds. */
  #kindsOf(definition: CustomResourceDefinition, before: readonly ServedKind[]): readonly Kind[] {
    const { scheme } = this.#registries;
    const previousKinds = new Set(before.map(({ kind }) => kind));
    const isFree = (kind: Kind | undefined): boolean => kind === undefined || previousKinds.has(kind);
    const converter = createConversionWebhook(definition, this.#conversion);
    const kinds: Kind[] = [];
    for (const { name, served } of definition.spec.versions) {
      if (!served) continue;
      const kind = converter?.kindOf(name) ?? createCustomKind(definition, name, undefined, this.#conversion.rules);
      const isUnused =
        isFree(scheme.byResource(kind.group, name, kind.plural)) && isFree(scheme.byKind(kind.group, name, kind.kind));
      if (isUnused) kinds.push(kind);
      else
        this.#log.warn("Not serving a custom resource: its names conflict with a built-in kind", {
          name: definition.metadata?.name,
        });
    }
    return kinds;
  }

  #retire(before: ServedDefinition | undefined): void {
    for (const served of before?.versions ?? []) {
      this.#byKind.delete(served.kind);
      const retired = served
        .retire()
        .catch((error: unknown) => this.#log.error("Cannot close a custom resource", error))
        .finally(() => this.#retiring.delete(retired));
      this.#retiring.add(retired);
    }
  }
}

/** Whether two states of a definition define the same kinds. */
function definesSameKinds(a: CustomResourceDefinition, b: CustomResourceDefinition): boolean {
  return (
    a.metadata?.uid === b.metadata?.uid &&
    deepEqual(a.spec, b.spec) &&
    deepEqual(a.status?.acceptedNames, b.status?.acceptedNames)
  );
}

function definitionState(definition: CustomResourceDefinition): DefinitionState {
  return { terminating: isConditionTrue(definition, "Terminating") };
}
