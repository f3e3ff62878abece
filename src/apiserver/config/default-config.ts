import { defaultFlags } from "../../flags/flag.ts";
import { apiserverGates } from "../../flags/gate-tables/apiserver.ts";
import { FeatureGates } from "../../flags/gates.ts";
import type { GateSettings } from "../../flags/types/gate-settings.ts";
import { apiserverFlags } from "../flags/flags.ts";
import type { ApiServerConfig } from "./config.ts";
import { apiServerOptions } from "./options.ts";

/**
 * The configuration of a server that starts without flags, for `svc up` and tests to override. It differs in what needs
 * files, a fixed port or controllers: everything is in memory, the port is any free one on loopback, and every request
 * is allowed.
 */
export const defaultConfig: ApiServerConfig = createDefaultConfig({});

/** The same with feature gates. */
export function createDefaultConfig(featureGates: GateSettings): ApiServerConfig {
  const gates = new FeatureGates(apiserverGates, featureGates);
  const fromFlags = apiServerOptions(defaultFlags(apiserverFlags), gates, "v1.33.0-svc");
  return {
    ...fromFlags,
    bindAddress: "127.0.0.1",
    securePort: 0,
    authentication: {
      ...fromFlags.authentication,
      anonymous: true,
      serviceAccounts: { ...fromFlags.authentication.serviceAccounts, generatedKeyFile: undefined },
    },
    // Without controllers no namespace has the service account that its pods need.
    admission: { ...fromFlags.admission, disabled: ["ServiceAccount"], allowPrivileged: true },
    storage: { ...fromFlags.storage, urls: ["memory://"] },
    observability: { ...fromFlags.observability, flags: {} },
    garbageCollector: false,
  };
}
