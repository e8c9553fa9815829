/** The programs that lie in /usr/bin. */

import type { CommandFunction } from "../shell/shell.js";
import { awk } from "./awk.js";
import { guarded } from "./call.js";
import { cmp, diff } from "./compare.js";
import * as copy from "./copy.js";
import { date } from "./date.js";
import { base64, digest, od, xxd } from "./encode.js";
import * as ends from "./ends.js";
import { expr } from "./expr.js";
import * as files from "./files.js";
import { find } from "./find.js";
import { grep } from "./grep.js";
import * as modes from "./modes.js";
import * as order from "./order.js";
import * as paths from "./paths.js";
import { echo, print, printf, testCommand } from "./print.js";
import { sed } from "./sed.js";
import * as system from "./system.js";
import * as text from "./text.js";
import { tr } from "./translate.js";
import { xargs } from "./xargs.js";

/** A program that writes one text. */
const says =
  (words: string): CommandFunction =>
  ({ shell }) => {
    print(shell, words);
    return 0;
  };

export const programs: ReadonlyMap<string, CommandFunction> = new Map<string, CommandFunction>(
  (
    [
      ["echo", echo],
      ["printf", printf],
      ["test", testCommand],
      ["[", testCommand],
      ["true", () => 0],
      ["false", () => 1],
      ["pwd", ({ shell }) => says(`${shell.folder}\n`)({ shell, name: "pwd", args: [] })],
      ["awk", awk],
      ["gawk", awk],
      ["mawk", awk],
      ["base64", base64],
      ["basename", paths.basename],
      ["cat", files.cat],
      ["chmod", modes.chmod],
      ["chown", modes.chown],
      ["clear", () => 0],
      ["cmp", cmp],
      ["column", text.column],
      ["comm", order.comm],
      ["cp", copy.cp],
      ["cut", text.cut],
      ["date", date],
      ["diff", diff],
      ["dirname", paths.dirname],
      ["du", paths.du],
      ["egrep", grep],
      ["env", system.env],
      ["expand", text.expand],
      ["expr", expr],
      ["fgrep", grep],
      ["file", paths.file],
      ["find", find],
      ["fold", text.fold],
      ["grep", grep],
      ["head", ends.head],
      ["hostname", says("box\n")],
      ["id", system.id],
      ["join", order.join],
      ["ln", copy.ln],
      ["ls", paths.ls],
      ["md5sum", digest("md5")],
      ["mkdir", files.mkdir],
      ["mktemp", files.mktemp],
      ["mv", copy.mv],
      ["nice", system.pass],
      ["nl", text.nl],
      ["nohup", system.pass],
      ["nproc", says("1\n")],
      ["od", od],
      ["paste", text.paste],
      ["printenv", system.printenv],
      ["readlink", paths.realpath],
      ["realpath", paths.realpath],
      ["rev", text.rev],
      ["rm", files.rm],
      ["rmdir", files.rmdir],
      ["sed", sed],
      ["seq", system.seq],
      ["sha1sum", digest("sha1")],
      ["sha256sum", digest("sha256")],
      ["sha512sum", digest("sha512")],
      ["shuf", order.shuf],
      ["sleep", system.sleep],
      ["sort", order.sort],
      ["split", text.split],
      ["stat", paths.stat],
      ["stdbuf", system.pass],
      ["sync", () => 0],
      ["tac", text.tac],
      ["tail", ends.tail],
      ["tee", text.tee],
      ["time", system.pass],
      ["timeout", system.timeout],
      ["touch", files.touch],
      ["tr", tr],
      ["truncate", files.truncate],
      ["tty", says("not a tty\n")],
      ["uname", system.uname],
      ["unexpand", text.expand],
      ["uniq", order.uniq],
      ["wc", ends.wc],
      ["which", paths.which],
      ["whoami", says("root\n")],
      ["xargs", xargs],
      ["xxd", xxd],
      ["yes", system.yes],
    ] satisfies readonly (readonly [string, CommandFunction])[]
  ).map(([name, run]) => [name, guarded(run)]),
);
