// transfer/import-objects.ts: takes the commits of an imported task through the same steps as an agent's work: a checked pack into staging,
// then checks of limits, names and texts, and only then into the user's repository.
import { AgsError } from '../protocol/errors.ts';
import { MEMBERS } from '../protocol/export.ts';
import { BROUGHT_LIMITS, HISTORY_LIMITS, isAncestor, judgeHistory, requireWhole } from '../git/staging/brought.ts';
import { receivePack } from '../git/staging/staging.ts';
import { inspectName } from '../review/names.ts';
import { refusedFile, type ExportFile } from './import-read.ts';

/** Stores the history from before the task, in a repository of ours or in a new one. */
export function takeHistory(file: ExportFile, gitDir: string): Promise<void> {
  const limits = HISTORY_LIMITS;
  return asImport(gitDir, async () => {
    await file.take(MEMBERS.base, (pack) =>
      receivePack(gitDir, pack, limits.packBytes, limits.timeoutMs, limits.objects),
    );
    await requireWhole(gitDir, file.manifest.work.root, null, limits);
  });
}

/** Stores the work of the task; refuses it unless a task could have brought out all of it. */
export function takeWork(file: ExportFile, staging: string): Promise<void> {
  const { root, base, commit } = file.manifest.work;
  const limits = BROUGHT_LIMITS;
  return asImport(staging, async () => {
    if (file.has(MEMBERS.work)) {
      await file.take(MEMBERS.work, (pack) =>
        receivePack(staging, pack, limits.packBytes, limits.timeoutMs, limits.objects),
      );
      await requireWhole(staging, commit, root);
      const history = await judgeHistory(staging, commit, root, isWrong);
      if (!history.keep) throw refusedFile(`its commits are not those of a task: ${history.why}`);
    }
    if (!(await isAncestor(staging, root, base)) || !(await isAncestor(staging, base, commit)))
      throw refusedFile('its commits do not build on each other');
  });
}

function isWrong(path: string, mode: string): boolean {
  return inspectName(path).refuse !== null || !/^(100644|100755|120000)$/.test(mode);
}

async function asImport(gitDir: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AgsError) || error.code !== 'capture.refused') throw error;
    if (/No space left|quota/i.test(error.message))
      throw new AgsError('disk.full', `There is no room left on the disk of ${gitDir}.`, {
        hint: 'Free some space, for example with: ags cleanup. Nothing was imported.',
      });
    throw refusedFile(error.message.replace(/^What came out of the sandbox was refused: /, '').replace(/\.$/, ''));
  }
}
