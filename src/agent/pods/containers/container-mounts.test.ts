import t from "tap";
import { resolveSubPath } from "./container-mounts.ts";

const environment = new Map([
  ["A", "a"],
  ["UP", "../x"],
  ["ROOT", "/x"],
  ["EMPTY", ""],
]);

for (const [subPathExpr, path] of [
  ["", ""],
  ["$(A)/b", "a/b"],
  ["$$(A)", "$(A)"],
  ["x..y/..z", "x..y/..z"],
] as const) {
  t.test(`resolveSubPath() expands "${subPathExpr}"`, async (t) =>
    t.equal(resolveSubPath({ subPathExpr }, environment), path),
  );
}

for (const [mount, message] of [
  [{ subPathExpr: "$(B)" }, "missing value for B"],
  [{ subPathExpr: "$(EMPTY)/x" }, "missing value for EMPTY"],
  [{ subPathExpr: "$(Z)-$(A)-$(B)-$(Z)" }, "missing value for B, Z"],
  [{ subPathExpr: "$(UP)" }, "unable to provision SubPath `../x`: must not contain '..'"],
  [{ subPathExpr: "$(ROOT)" }, "error SubPath `/x` must not be an absolute path"],
  [{ subPath: "a/../b" }, "unable to provision SubPath `a/../b`: must not contain '..'"],
] as const) {
  t.test(`resolveSubPath() rejects ${JSON.stringify(mount)} with Kubernetes' text`, async (t) =>
    t.throws(() => resolveSubPath(mount, environment), { message }),
  );
}
