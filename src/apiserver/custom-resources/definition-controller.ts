/**
 * The controller of custom resource definitions:
 *
 *     created: accept names (write status) → serve → establish (write status)
 *     deleted: terminating (set by the delete) → delete objects → remove the finalizer → stop serving
 */

import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import {
  acceptNames,
  isConditionTrue,
  markEstablished,
} from "../../api/apiextensions/custom-resource-definition/status.ts";
import type { GroupAliases } from "../../api/group-aliases.ts";
import { kubernetesGroup, svcGroup } from "../../api/scheme.ts";
import { StatusError } from "../../api/status.ts";
import { MASTERS } from "../../auth/user.ts";
import { trackManagedFields } from "../../registry/managed-fields/track-managed-fields.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import { guaranteedUpdate } from "../../registry/write/guaranteed-update.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { syncCustomApiServices } from "./custom-api-services.ts";
import type { CustomResources } from "./custom-resources.ts";
import { finalizeDefinition, needsFinalizer } from "./definition-finalizer.ts";

export interface DefinitionControllerDeps {
  readonly registries: Registries;
  readonly customResources: CustomResources;
  readonly groupAliases: GroupAliases;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts when the server stops. */
  readonly signal: AbortSignal;
}

export interface RunningDefinitionController {
  /** Resolves when all definitions that are stored at the start are served. */
  ready(): Promise<void>;
  /** Resolves when the controller has stopped, after the signal. */
  readonly ended: Promise<void>;
}

export function startDefinitionController(deps: DefinitionControllerDeps): RunningDefinitionController {
  const controller = new DefinitionController(deps);
  const ended = controller.run();
  return { ready: () => controller.ready, ended };
}

const RETRY_MS = 1000;
/** The field manager of status updates, as in Kubernetes. */
const FIELD_MANAGER = "kube-apiserver";

type DefinitionUpdate = (definition: CustomResourceDefinition, now: string) => CustomResourceDefinition;

class DefinitionController {
  readonly #deps: DefinitionControllerDeps;
  readonly #registry: Registry<CustomResourceDefinition>;
  readonly #scope: Scope;
  readonly #ready = Promise.withResolvers<void>();
  /** The change count of the scheme at the last sync of API services. */
  #syncedChangeCount = -1;
  /** Running finalizers by uid of the definition. */
  readonly #finalizers = new Map<string, Promise<void>>();

  constructor(deps: DefinitionControllerDeps) {
    this.#deps = deps;
    this.#registry = deps.registries.of(customResourceDefinitionKind);
    this.#scope = {
      namespace: "",
      group: kubernetesGroup(customResourceDefinitionKind.group),
      user: { name: "system:apiserver", uid: "", groups: [MASTERS], extra: {} },
      signal: deps.signal,
    };
    this.#ready.promise.catch(() => {});
  }

  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const { clock, log, signal } = this.#deps;
    while (!signal.aborted) {
      try {
        await this.#watch();
      } catch (error) {
        if (signal.aborted) break;
        log.error("Restarting the watch of custom resource definitions", error);
        await clock.sleep(RETRY_MS, signal).catch(() => {});
      }
    }
    this.#ready.reject(new Error("the server is stopping"));
    await Promise.all(this.#finalizers.values());
  }

  async #watch(): Promise<void> {
    const { cache, objects } = this.#registry;
    await Promise.race([cache.ready(), waitForAbort(this.#deps.signal)]);
    for (const name of this.#deps.customResources.names())
      if (this.#find(name) === undefined) this.#deps.customResources.withdraw(name);
    const prefix = objects.prefix();
    let started = false;
    for await (const event of cache.watch({ prefix, initialEventsEnd: true, signal: this.#deps.signal })) {
      if (event.type === "BOOKMARK") {
        started = true;
        await this.#syncApiServices();
        this.#ready.resolve();
        continue;
      }
      const definition = event.item.object;
      await this.#reconcile(definition.metadata?.name ?? "");
      // The change may free names that other definitions need.
      for (const other of this.#conflictingDefinitions(definition)) await this.#reconcile(other);
      if (started) await this.#syncApiServices();
    }
  }

  /** Syncs the API services after the served kinds have changed. */
  async #syncApiServices(): Promise<void> {
    const { registries, groupAliases, log, signal } = this.#deps;
    const { changeCount } = registries.scheme;
    if (changeCount === this.#syncedChangeCount) return;
    try {
      await syncCustomApiServices(registries, groupAliases, this.#scope, FIELD_MANAGER);
      this.#syncedChangeCount = changeCount;
    } catch (error) {
      if (!signal.aborted) log.error("Cannot sync the API services of custom resources", error);
    }
  }

  /** Serves the cached state of the definition, and updates its status. */
  async #reconcile(name: string): Promise<void> {
    const { customResources, log, signal } = this.#deps;
    try {
      const stored = this.#find(name);
      if (stored === undefined) {
        customResources.withdraw(name);
        return;
      }
      const isDeleted = stored.metadata?.deletionTimestamp !== undefined;
      const accepted = isDeleted ? stored : await this.#write(stored, this.#acceptNames);
      if (isConditionTrue(accepted, "NamesAccepted") || isConditionTrue(accepted, "Established"))
        customResources.serve(accepted);
      if (!isDeleted) await this.#write(accepted, markEstablished);
      else if (needsFinalizer(stored)) this.#startFinalizer(stored);
    } catch (error) {
      if (signal.aborted) return;
      // Another server over the same store wrote first; the watch delivers its change.
      if (error instanceof StatusError && [404, 409].includes(error.status.code)) return;
      log.error("Cannot serve a custom resource definition", error, { name });
    }
  }

  readonly #acceptNames: DefinitionUpdate = (definition, now) => acceptNames(definition, this.#definitions(), now);

  #find(name: string): CustomResourceDefinition | undefined {
    return this.#registry.cache.get(this.#registry.objects.key(undefined, name))?.object;
  }

  #definitions(): readonly CustomResourceDefinition[] {
    return this.#registry.cache.list(this.#registry.objects.prefix()).items.map(({ object }) => object);
  }

  /** Other definitions of the group whose names are not accepted. */
  #conflictingDefinitions({ metadata, spec }: CustomResourceDefinition): readonly string[] {
    return this.#definitions()
      .filter((other) => other.metadata?.name !== metadata?.name)
      .filter(
        (other) => svcGroup(other.spec.group) === svcGroup(spec.group) && !isConditionTrue(other, "NamesAccepted"),
      )
      .map((other) => other.metadata?.name ?? "");
  }

  /** Writes the updated definition; returns the same object when nothing changes. */
  async #write(definition: CustomResourceDefinition, next: DefinitionUpdate): Promise<CustomResourceDefinition> {
    if (next(definition, this.#registry.timestamp()) === definition) return definition;
    return await this.#writeStored(definition.metadata?.name ?? "", next);
  }

  async #writeStored(name: string, next: DefinitionUpdate): Promise<CustomResourceDefinition> {
    const registry = this.#registry;
    const options = { fieldManager: FIELD_MANAGER, subresource: "status" };
    const request = { registry, scope: this.#scope, name, options };
    return await guaranteedUpdate(request, (previous) => {
      const changed = next(previous, registry.timestamp());
      return changed === previous ? previous : trackManagedFields(request, changed, previous);
    });
  }

  #startFinalizer(definition: CustomResourceDefinition): void {
    const uid = definition.metadata?.uid ?? "";
    if (this.#finalizers.has(uid)) return;
    const cleaning = this.#finalizeWithRetries(definition).finally(() => this.#finalizers.delete(uid));
    this.#finalizers.set(uid, cleaning);
  }

  /** Never rejects. */
  async #finalizeWithRetries(definition: CustomResourceDefinition): Promise<void> {
    const { registries, clock, log, signal } = this.#deps;
    const write = (name: string, next: DefinitionUpdate) => this.#writeStored(name, next);
    while (!signal.aborted) {
      try {
        await finalizeDefinition(definition, { registries, clock, scope: this.#scope, write });
        return;
      } catch (error) {
        if (signal.aborted || (error instanceof StatusError && error.status.code === 404)) return;
        log.error("Cannot delete the objects of a custom resource definition; retrying", error, {
          name: definition.metadata?.name,
        });
        await clock.sleep(RETRY_MS, signal).catch(() => {});
      }
    }
  }
}
