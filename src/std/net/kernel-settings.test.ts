import t from "tap";
import { silentLogger } from "../log/logger.ts";
import { BRIDGE_FILTER, enableSettings, loadBridgeFilter, systemKernel } from "./kernel-settings.ts";

t.test("loadBridgeFilter() loads the module only if its settings are missing", async (t) => {
  const loaded: string[] = [];
  const host = (value: string | undefined) => ({
    read: async () => value,
    write: async () => {},
    loadModule: async (name: string) => void loaded.push(name),
  });
  await loadBridgeFilter(host("0"));
  t.same(loaded, []);
  await loadBridgeFilter(host(undefined));
  t.same(loaded, ["br_netfilter"]);
});

t.test("enableSettings() skips settings that do not exist", async (t) => {
  t.equal(await systemKernel.read("/nowhere/x"), undefined);
  await enableSettings(["/nowhere/x"], "tests", silentLogger, systemKernel);
  const written: string[] = [];
  const host = { ...systemKernel, read: async () => "0", write: async (path: string) => void written.push(path) };
  await enableSettings([BRIDGE_FILTER], "tests", silentLogger, host);
  t.same(written, [BRIDGE_FILTER]);
});
