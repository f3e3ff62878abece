import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { cloneRepository } from "./git-repo.ts";

const hasGit = (() => {
  try {
    return execFileSync("git", ["--version"]).length > 0;
  } catch {
    return false;
  }
})();

/** A repository with two commits, and an empty volume. */
function prepare(t: Test) {
  const root = t.testdir({ source: {}, volume: {} });
  const source = join(root, "source");
  const run = (...args: readonly string[]) => {
    const identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"];
    return execFileSync("git", [...identity, ...args], { cwd: source, encoding: "utf8", stdio: "pipe" }).trim();
  };
  run("init", "--quiet");
  const revisions = ["one", "two"].map((text) => {
    writeFileSync(join(source, "file"), text);
    run("add", "file");
    run("commit", "--quiet", "--message", text);
    return run("rev-parse", "HEAD");
  });
  return {
    repository: source,
    first: revisions[0]!,
    volume: join(root, "volume"),
    marker: join(root, "meta", "ready"),
  };
}

t.test("cloneRepository() clones once, at the revision", { skip: !hasGit }, async (t) => {
  const { repository, first, volume, marker } = prepare(t);
  await cloneRepository({ repository, revision: first }, volume, marker);
  t.equal(readFileSync(join(volume, "source", "file"), "utf8"), "one");
  writeFileSync(join(volume, "source", "file"), "changed by the pod");
  await cloneRepository({ repository, revision: first }, volume, marker);
  t.equal(readFileSync(join(volume, "source", "file"), "utf8"), "changed by the pod");
});

t.test(
  "cloneRepository() clones into the directory, also after an attempt that failed",
  { skip: !hasGit },
  async (t) => {
    const { repository, volume, marker } = prepare(t);
    mkdirSync(join(volume, "rest"));
    await cloneRepository({ repository, directory: "." }, volume, marker);
    t.same(readdirSync(volume).sort(), [".git", "file"]);
  },
);

t.test("cloneRepository() rejects with Kubernetes' messages", { skip: !hasGit }, async (t) => {
  const { repository, volume, marker } = prepare(t);
  const messageOf = async (source: Parameters<typeof cloneRepository>[0]): Promise<string> =>
    await cloneRepository(source, volume, marker).then(
      () => "",
      (error: Error) => error.message,
    );
  t.equal(await messageOf({ repository: "--upload-pack=x" }), '"--upload-pack=x" is an invalid value for repository');
  t.equal(await messageOf({ repository, revision: "-x" }), '"-x" is an invalid value for revision');
  t.equal(
    await messageOf({ repository, revision: "main", directory: "a/b" }),
    '"a/b" is not a valid directory, it must not contain a directory separator',
  );
  t.match(await messageOf({ repository: `${repository}-none` }), /^failed to exec 'git clone -- .*: exit status 128$/s);
  t.match(
    await messageOf({ repository, revision: "none" }),
    /^failed to exec 'git checkout none': .*: exit status 1$/s,
  );
});
