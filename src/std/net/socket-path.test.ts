import t from "tap";
import { checkSocketPath, SOCKET_PATH_BYTES_MAX } from "./socket-path.ts";

t.test("checkSocketPath() throws for a path that is longer than the kernel allows", async (t) => {
  checkSocketPath(`/${"a".repeat(SOCKET_PATH_BYTES_MAX - 1)}`);
  t.throws(() => checkSocketPath(`/${"a".repeat(SOCKET_PATH_BYTES_MAX)}`), /more than 107 bytes: \/aaa/);
  t.throws(() => checkSocketPath(`/${"ä".repeat(54)}`), /more than 107 bytes/);
});
