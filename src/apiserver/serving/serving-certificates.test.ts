import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { defaultConfig } from "../config/default-config.ts";
import { servingCertificates } from "./serving-certificates.ts";
import { servingNames } from "./serving-names.ts";

const host = { hostname: "Edge-1", addresses: ["192.0.2.7", "2001:db8::7"] };

function configOf(more: {
  readonly bindAddress?: string;
  readonly serving?: Partial<ApiServerConfig["serving"]>;
  readonly services?: Partial<ApiServerConfig["services"]>;
}): ApiServerConfig {
  return {
    ...defaultConfig,
    bindAddress: more.bindAddress ?? "0.0.0.0",
    serving: { ...defaultConfig.serving, ...more.serving },
    services: { ...defaultConfig.services, ...more.services },
  };
}

t.test("servingNames() contains all addresses under which clients reach the server", async (t) => {
  const config = configOf({
    serving: { advertisedHost: "API.example.com:6443" },
    services: { advertiseAddress: "198.51.100.4", clusterIpRanges: ["10.96.0.0/16", "fd00::/108"] },
  });
  const { required, addresses } = servingNames(config, host);
  for (const name of [
    "localhost",
    "127.0.0.1",
    "edge-1",
    "kubernetes.default.svc",
    "10.96.0.1",
    "fd00::1",
    "api.example.com",
    "198.51.100.4",
  ]) {
    t.ok(required.includes(name), name);
  }
  t.same(addresses, host.addresses);
  const specific = servingNames(configOf({ bindAddress: "203.0.113.1", serving: { advertisedHost: "::1" } }), host);
  t.ok(specific.required.includes("203.0.113.1"));
  t.same(specific.addresses, [], "the server does not listen on the host's other addresses");
});

t.test("servingCertificates() replaces a generated certificate only if a required name is missing", async (t) => {
  const certDir = await mkdtemp(join(tmpdir(), "svc-serving-"));
  t.teardown(() => rm(certDir, { recursive: true }));
  const start = async (more: Parameters<typeof configOf>[0]): Promise<X509Certificate> => {
    const config = configOf({ ...more, serving: { ...more.serving, certDir } });
    using _certificates = await servingCertificates(config, systemClock, silentLogger);
    return new X509Certificate(await readFile(join(certDir, "apiserver.crt")));
  };
  const first = await start({});
  t.equal((await start({})).fingerprint256, first.fingerprint256);
  t.equal(first.checkIP("198.51.100.4"), undefined);
  const second = await start({ services: { advertiseAddress: "198.51.100.4" } });
  t.equal(second.checkIP("198.51.100.4"), "198.51.100.4");
  const third = await start({ serving: { advertisedHost: "api.example.com" } });
  t.equal(third.checkHost("api.example.com"), "api.example.com");
});
