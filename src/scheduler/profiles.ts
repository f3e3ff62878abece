/** One framework for each profile of the configuration. */
import type { Nominator } from "./cache/nominator.ts";
import type { PodInfo } from "./cache/pod-info.ts";
import { DEFAULT_SCHEDULER_NAME, type SchedulerConfiguration } from "./config/configuration.ts";
import { expandPlugins } from "./config/profile.ts";
import { type ClusterEvent, type EventRegistration, registrationMatches } from "./framework/cluster-event.ts";
import { Framework } from "./framework/framework.ts";
import { FrameworkMetrics } from "./framework/framework-metrics.ts";
import { createPlugins, type PluginDeps } from "./plugins/registry.ts";

interface Registration {
  readonly plugin: string;
  readonly registration: EventRegistration;
}

export class Profiles {
  readonly #frameworks = new Map<string, Framework>();
  readonly #registrations = new Map<string, readonly Registration[]>();
  readonly #metrics: FrameworkMetrics;

  constructor(
    config: SchedulerConfiguration,
    deps: Omit<PluginDeps, "framework">,
    nominator: Nominator,
    metrics = new FrameworkMetrics(),
  ) {
    this.#metrics = metrics;
    for (const profile of config.profiles) {
      const { schedulerName } = profile;
      const framework = (): Framework => this.#frameworks.get(schedulerName)!;
      const available = createPlugins(profile.pluginConfig ?? {}, { ...deps, framework });
      const created = new Framework({
        ...expandPlugins(schedulerName, profile.plugins ?? {}, available),
        schedulerName,
        percentageOfNodesToScore: profile.percentageOfNodesToScore ?? config.percentageOfNodesToScore,
        nominator,
        metrics,
      });
      this.#frameworks.set(schedulerName, created);
      const registrations = created.plugins().flatMap(({ name, events = [] }) =>
        events.map(({ hint, ...event }) => {
          const registration = deps.features.queueingHints ? { ...event, hint } : event;
          return { plugin: name, registration };
        }),
      );
      this.#registrations.set(schedulerName, registrations);
    }
  }

  has(schedulerName: string | undefined): boolean {
    return this.#frameworks.has(schedulerName ?? DEFAULT_SCHEDULER_NAME);
  }

  of({ pod }: PodInfo): Framework | undefined {
    return this.#frameworks.get(pod.spec?.schedulerName ?? DEFAULT_SCHEDULER_NAME);
  }

  isRegistered(event: ClusterEvent): boolean {
    for (const registrations of this.#registrations.values()) {
      if (registrations.some(({ registration }) => registrationMatches(registration, event))) return true;
    }
    return false;
  }

  /** The plugins that rejected the pod and may decide otherwise after the event. */
  interestedPlugins({ pod }: PodInfo, event: ClusterEvent, rejectedBy: ReadonlySet<string>): readonly string[] {
    const registrations = this.#registrations.get(pod.spec?.schedulerName ?? DEFAULT_SCHEDULER_NAME) ?? [];
    const interested: string[] = [];
    for (const { plugin, registration } of registrations) {
      if (!rejectedBy.has(plugin) || !registrationMatches(registration, event)) continue;
      const { hint } = registration;
      const label = `${event.resource}${event.action}`;
      if (hint === undefined || this.#metrics.measureHint(plugin, label, () => hint(pod, event)))
        interested.push(plugin);
    }
    return interested;
  }
}
