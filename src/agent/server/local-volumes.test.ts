import { readdir } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { makeRequest } from "../../http/request.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { openProvisionedVolumes, serveLocalVolume } from "./local-volumes.ts";

const NAME = "pvc-01234567-89ab-cdef-0123-456789abcdef";

t.test("directories of volumes are created and removed by requests", async (t) => {
  const rootDir = t.testdir();
  const volumes = openProvisionedVolumes(rootDir, silentLogger);
  const send = async (action: string, body: string, volume = NAME) => {
    const request = makeRequest({
      method: "POST",
      path: `/localVolumes/${volume}/${action}`,
      body: Buffer.from(body),
    });
    return await serveLocalVolume(volumes, request, { volume });
  };
  const created = await send("ensure", '{"sizeBytes":1024}');
  t.equal(created.status, 200);
  const path = join(rootDir, "local-volumes", NAME);
  t.match(JSON.parse(String(created.body)), { path, isSizeEnforced: Boolean });
  t.same(await readdir(join(rootDir, "local-volumes")), [NAME]);
  t.equal((await send("remove", "{}")).status, 200);
  t.same(await readdir(join(rootDir, "local-volumes")), []);
  for (const body of ["", "null", "{}", '{"sizeBytes":-1}', '{"sizeBytes":"1"}', '{"sizeBytes":1e99}', "[]"]) {
    await t.rejects(send("ensure", body), { message: "the body must have sizeBytes, a number of bytes" }, body);
  }
  await t.rejects(send("remove", "{}", "pods"), { message: /is no name of a provisioned volume/ });
});
