import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { strings } from "../../flags/types/list.ts";
import { storeServers } from "../../flags/types/network.ts";
import { int } from "../../flags/types/number.ts";
import { bool, file, keyPrefix, oneOf } from "../../flags/types/text.ts";
import { addressTypes, isCacheSize, isServersOverride, runtimeConfig } from "./values.ts";

export const storageFlags = section("Storage, node connections and caching", {
  "storage-backend": flag(oneOf("kvstore3"), "kvstore3", "Persistence backend."),
  "storage-media-type": flag(
    oneOf("application/json", "application/yaml", "application/vnd.svc.protobuf"),
    "application/vnd.svc.protobuf",
    "Stored media type; supported: application/json, application/yaml, application/vnd.svc.protobuf; some " +
      "resources may ignore it.",
  ),
  "storage-initialization-timeout": flag(
    duration({ min: 1 }),
    60_000,
    "Max wait for storage initialization before declaring ready.",
  ),
  "kvstore-servers": flag(storeServers, [], "scheme://ip:port server list."),
  "kvstore-servers-overrides": flag(
    strings({
      element: "group/resource#server;server",
      accepts: isServersOverride,
      sample: "/events#http://192.0.2.9:2379",
      wrong: "events",
    }),
    [],
    "group/resource#server;server overrides, built-in resources only.",
  ),
  "kvstore-cafile": flag(file, "", "CA that verifies the certificate of the store."),
  "kvstore-certfile": flag(file, "", "Client certificate for connections to the store.", {
    requires: ["kvstore-keyfile"],
  }),
  "kvstore-keyfile": flag(file, "", "Key of the client certificate for connections to the store.", {
    requires: ["kvstore-certfile"],
  }),
  "kvstore-prefix": flag(keyPrefix, "/registry", "Prefix of all stored resource paths."),
  "kvstore-compaction-interval": flag(duration({ min: 0 }), 300_000, "Compaction request interval; 0 disables."),
  "kvstore-count-metric-poll-period": flag(duration({ min: 0 }), 60_000, "Polling for per-type counts; 0 disables."),
  "kvstore-db-metric-poll-interval": flag(duration({ min: 0 }), 30_000, "Polling for the metric; 0 disables."),
  "kvstore-healthcheck-timeout": flag(duration({ min: 1 }), 2000, "Health check timeout."),
  "kvstore-readycheck-timeout": flag(duration({ min: 1 }), 2000, "Readiness check timeout."),
  "encryption-provider-config": flag(file, "", "Encryption providers for secrets in storage."),
  "encryption-provider-config-automatic-reload": flag(
    bool,
    false,
    "Reload on file change; when true, the health endpoints do not distinguish KMS plugins.",
  ),
  "watch-cache": flag(bool, true, "Enable watch caching."),
  "watch-cache-sizes": flag(
    strings({ element: "resource[.group]#size", accepts: isCacheSize, sample: "events#0", wrong: "events" }),
    [],
    "resource[.group]#size; only meaningful for built-in resources; only 0 (disable the cache for that " +
      "resource) is meaningful, any non-zero is equivalent.",
  ),
  "enable-garbage-collector": flag(bool, true, "Must match the controller manager's setting."),
  "delete-collection-workers": flag(int({ min: 1 }), 1, "Workers for DeleteCollection (speeds namespace cleanup)."),
  "event-ttl": flag(duration({ min: 1 }), 3_600_000, "Event retention."),
  "lease-reuse-duration-seconds": flag(
    int({ min: 1 }),
    60,
    "Seconds each lease is reused; too small may hurt storage performance.",
  ),
  "svclet-certificate-authority": flag(file, "", "CA that verifies the certificates of node agents."),
  "svclet-client-certificate": flag(file, "", "Client certificate for connections to node agents.", {
    requires: ["svclet-client-key"],
  }),
  "svclet-client-key": flag(file, "", "Key of the client certificate for connections to node agents.", {
    requires: ["svclet-client-certificate"],
  }),
  "svclet-preferred-address-types": flag(
    strings({ choices: addressTypes }),
    addressTypes,
    "Order of node address types for node agent connections.",
  ),
  "svclet-timeout": flag(duration({ min: 1 }), 5000, "Timeout for node agent operations."),
  "egress-selector-config-file": flag(file, "", "Egress selector configuration (document 3)."),
  "tracing-config-file": flag(file, "", "Tracing configuration (document 3)."),
  "runtime-config": flag(
    runtimeConfig,
    {},
    "Enable/disable built-in APIs: v1=true|false (core), <group>/<version>=true|false, api/all, api/ga " +
      "(versions v[0-9]+), api/beta (v[0-9]+beta[0-9]+), api/alpha (v[0-9]+alpha[0-9]+); api/legacy is " +
      "deprecated.",
  ),
});
