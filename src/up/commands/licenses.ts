/** `svc licenses`: prints the notices of the third-party software in this file, which build.mjs adds. */
import { gunzipSync } from "node:zlib";

/** In the bundle (build.mjs): the bytes of a part. */
declare const SVC_READ_BYTES: ((name: string) => Uint8Array) | undefined;

export async function run(argv: readonly string[]): Promise<number> {
  const help = argv[0] === "--help" || argv[0] === "-h";
  if (help || argv.length > 0) {
    const output = help ? process.stdout : process.stderr;
    output.write(help ? "Usage: svc licenses\n" : `svc licenses: unknown argument ${JSON.stringify(argv[0])}\n`);
    return help ? 0 : 1;
  }
  if (typeof SVC_READ_BYTES === "undefined") {
    process.stderr.write("svc licenses: only built programs contain notices; the packages are in node_modules\n");
    return 1;
  }
  process.stdout.write(gunzipSync(SVC_READ_BYTES("notices")));
  return 0;
}
