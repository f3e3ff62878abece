/** The source positions in the logs of the single-file programs. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import t from "tap";
import { isExecutable } from "../../testing/apiserver/kubectl-paths.ts";
import { command, programs, root } from "./cluster.ts";

/** Messages of a starting server, with the files that log them. Their parts import names over several lines. */
const messages = [
  { text: "Loaded admission plugins in order", file: "src/apiserver/admission/admission.ts" },
  { text: "Generated self-signed cert", file: "src/apiserver/serving/serving-certificates.ts" },
];

for (const [file] of [programs.bundle, programs.binary]) {
  t.test(`${basename(file)} logs the source file and line of each message`, async (t) => {
    if (!isExecutable(file)) {
      console.error(`Skipped: ${file} does not exist; make build binary creates it.`);
      return;
    }
    const directory = mkdtempSync(join(tmpdir(), "svc-positions-"));
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    // The server stops because its port is in use. With several threads, that is the first thing it checks.
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    t.teardown(() => taken.close());
    const address = taken.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const flags = ["--kvstore-servers=memory://", `--cert-dir=${directory}`, "--bind-address=127.0.0.1", "--workers=1"];
    const { code, stderr } = await command(file, ["apiserver", ...flags, `--secure-port=${port}`]);
    t.equal(code, 1, stderr);
    for (const { text, file } of messages) {
      const line = readFileSync(join(root, file), "utf8")
        .split("\n")
        .findIndex((each) => each.includes(text));
      t.match(stderr, `${basename(file)}:${line + 1}] "${text}"`);
    }
  });
}
