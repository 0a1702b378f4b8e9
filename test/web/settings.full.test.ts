// test/web/settings.full.test.ts: what a person sets for good, in a browser: notifications, keys, projects, what the disk holds.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPlace, seen, type Place, type Window } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace();
});
afterAll(() => place[Symbol.asyncDispose]());

const start = (name: string, goal: string): Promise<unknown> =>
  place.machine.ags(['start', name, goal, '--agent', 'demo', '--max-parallel', '64', '--detach']);
/** A busy machine starts one agent at a time. */
const remove = (name: string): Promise<unknown> => place.machine.ags(['rm', name, '--force', '--yes']);

/** What the page hands to the system. */
const RECORD = `
  globalThis.told = [];
  globalThis.Notification = class extends Notification {
    constructor(title, options) { super(title, options); globalThis.told.push([title, options.body]); }
  };`;

/** Playwright lets every window believe that it is in front. */
async function focus({ page, context }: Window, inFront: boolean): Promise<void> {
  const devtools = await context.newCDPSession(page);
  await devtools.send('Emulation.setFocusEmulationEnabled', { enabled: inFront });
  await expect.poll(() => page.evaluate('document.hasFocus()')).toBe(inFront);
}

test('who looks elsewhere is told of a question and of an end, and nobody who looks at the page', async () => {
  await using window = await place.open('/favicon.svg', { permissions: ['notifications'] });
  const { page, context, complaints } = window;
  await context.addInitScript(RECORD);
  await page.goto(new URL('/settings', page.url()).href);
  const told = (): Promise<unknown> => page.evaluate('globalThis.told');
  await page.getByRole('button', { name: 'Notify me' }).click();
  await page.getByRole('checkbox', { name: 'Notifications' }).waitFor();

  // In front: it is announced in the page alone.
  await start('seen', 'ask: Red or blue? // wait: 600');
  await page.locator('[aria-live=assertive]').getByText('Needs you').waitFor({ state: 'attached' });
  await page.clock.install();
  await page.clock.fastForward(20_000);
  expect(await told()).toEqual([]);

  await remove('seen');
  // Behind: a question, with the words of the agent cleaned; then, ten seconds later at the earliest, the rest in one.
  await page.context().newPage();
  await focus(window, false);
  await start('unseen', 'Choose\nask: Cats \u001b[31mor dogs? // wait: 600');
  await page.locator('[aria-live=assertive]').getByText('Choose: Needs you').waitFor({ state: 'attached' });
  await expect.poll(told).toEqual([['Needs you: Choose', expect.stringContaining('Cats \\x1b[31mor dogs?')]]);
  // Its clock goes on by itself, and two tasks can take longer than ten seconds.
  await page.clock.setSystemTime(Date.now() - 100_000);
  await remove('unseen');
  await place.machine.runDemo('end-a', 'Alpha\nwrite: a.txt 1');
  await place.machine.runDemo('end-b', 'Beta\nfail: no');
  await page.locator('[aria-live=polite]').getByText('Failed').waitFor({ state: 'attached' });
  expect(await told()).toHaveLength(1);
  await page.clock.fastForward(200_000);
  await expect.poll(told).toHaveLength(2);
  expect(await told()).toContainEqual(['2 tasks wait for you', 'Alpha\nBeta']);

  // Switched off, nothing more is said.
  await page.getByRole('checkbox', { name: 'Notifications' }).click();
  await place.machine.runDemo('end-c', 'Gamma\nfail: no');
  await page.locator('[aria-live=polite]').getByText('Gamma').waitFor({ state: 'attached' });
  await page.clock.fastForward(20_000);
  expect(await told()).toHaveLength(2);
  expect(complaints).toEqual([]);
});

test('a key that was changed works after a reload, and the old one does not; reset brings it back', async () => {
  await using window = await place.open('/settings');
  const { page, complaints } = window;
  await page.getByText('Change keys').click();
  const change = page.getByRole('button', { name: 'Change: New goal' });
  await change.click();
  await page.keyboard.press('q');
  await page.getByRole('listitem').filter({ hasText: 'New goal' }).getByText('Q', { exact: true }).waitFor();
  await page.goto(new URL(place.tasks, page.url()).href);
  const box = page.getByRole('textbox', { name: 'What should an agent do?' });
  await box.waitFor();
  const isInBox = (): Promise<boolean> => page.evaluate(`document.activeElement?.tagName === 'TEXTAREA'`);
  await page.keyboard.press('c');
  expect(await isInBox()).toBe(false);
  await page.keyboard.press('q');
  expect(await isInBox()).toBe(true);
  expect(await box.inputValue()).toBe('');
  // The sheet of keys says so too.
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).getByText('Q', { exact: true }).waitFor();
  await page.goto(new URL('/settings', page.url()).href);
  await page.getByText('Change keys').click();
  await page.getByRole('button', { name: 'Reset: New goal' }).click();
  await page.getByRole('listitem').filter({ hasText: 'New goal' }).getByText('C', { exact: true }).waitFor();
  expect(complaints).toEqual([]);
});

test('what nobody needs is deleted from the page, and work that was never merged stays', async () => {
  await place.machine.runDemo('kept', 'write: kept.txt 1');
  await place.machine.runDemo('idle', 'say: I changed nothing');
  await using window = await place.open('/settings');
  const { page, complaints } = window;
  const storage = page.getByRole('region', { name: 'Storage' });
  const line = (name: string) => storage.getByRole('listitem').filter({ has: page.getByText(name, { exact: true }) });
  await line('idle').getByText('Can be deleted').waitFor();
  await line('kept').getByText('Kept', { exact: true }).waitFor();
  await storage.getByRole('button', { name: /^Delete \d+ things?,/ }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('idle', { exact: true }).waitFor();
  expect(await dialog.getByText('kept', { exact: true }).count()).toBe(0);
  await dialog.getByRole('button', { name: 'Keep' }).click();
  expect(place.machine.tasks()).toContain('idle');
  await storage.getByRole('button', { name: /^Delete \d+ things?,/ }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText(/^\d+ things? deleted, .* freed$/).waitFor();
  await line('idle').waitFor({ state: 'detached' });
  await line('kept').getByText('Kept', { exact: true }).waitFor();
  expect(place.machine.tasks()).toContain('kept');
  expect(place.machine.tasks()).not.toContain('idle');
  expect(complaints).toEqual([]);
});

/** git:// on loopback, which serves one repository as soon as it is told to go on. */
async function gitServer(path: string): Promise<{ url: string; goOn(): void } & Disposable> {
  let goOn = (): void => undefined;
  const going = new Promise<void>((resolve) => (goOn = resolve));
  const serve = async (socket: Socket): Promise<void> => {
    const request = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
    socket.pause();
    // What git prints while it clones comes from here: a line, and then nothing for a while.
    await going;
    const length = Number.parseInt(request.toString('latin1', 0, 4), 16);
    const child = spawn('git', ['-c', 'safe.directory=*', 'upload-pack', path], { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin.write(request.subarray(length));
    // Who has all that it wanted may go before the other has said everything.
    child.stdin.on('error', () => undefined);
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
  };
  const server: Server = createServer((socket) => void serve(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `git://127.0.0.1:${port}/shop.git`, goOn, [Symbol.dispose]: () => void server.close() };
}

test('a project is cloned by its address while the page says how far it is, and is taken off the list again', async () => {
  const { machine } = place;
  const bare = join(machine.home, 'shop.git');
  machine.git('clone', '-q', '--bare', machine.project, bare);
  using git = await gitServer(bare);
  await using window = await place.open('/');
  const { page, complaints } = window;
  const add = async (address: string): Promise<void> => {
    await page.getByRole('button', { name: 'Add a project' }).click();
    await page.getByRole('textbox', { name: 'Path or address' }).fill(address);
    await page.getByRole('button', { name: 'Clone' }).click();
  };
  await add(git.url);
  await page.getByRole('heading', { name: 'Tasks of shop' }).waitFor({ state: 'attached' });
  await page.getByRole('status').getByText(`Cloning ${git.url}`).waitFor();
  await page.getByRole('status').getByText('Cloning into').waitFor();
  // Nothing can be started in half a project.
  expect(await page.getByRole('textbox', { name: 'What should an agent do?' }).count()).toBe(0);
  git.goOn();
  await page.getByRole('textbox', { name: 'What should an agent do?' }).waitFor();
  const clone = join(machine.home, '.local/share/ags/projects/shop');
  expect(existsSync(join(clone, 'README.md'))).toBe(true);

  // An address that names a command is refused, one that nobody answers says why.
  await add('ext://sh');
  await page.getByRole('alert').getByText('is not the address of a repository').waitFor();
  await page.keyboard.press('Escape');
  await add(`file://${machine.home}/nowhere.git`);
  await seen(page, 'The repository could not be cloned');

  await page.goto(new URL('/settings', page.url()).href);
  const projects = page.getByRole('region', { name: 'Projects' });
  await projects.getByRole('button', { name: 'Take off the list: shop' }).click();
  await page.getByText('Taken off the list; its files and tasks stay').waitFor();
  await projects.getByRole('button', { name: 'Take off the list: shop' }).waitFor({ state: 'detached' });
  expect(existsSync(join(clone, 'README.md'))).toBe(true);
  // One that tasks name stays, and the page says so.
  await machine.runDemo('named', 'say: hello');
  await projects.getByRole('button', { name: 'Take off the list: project' }).click();
  await projects.getByRole('button', { name: 'Take off the list: project' }).waitFor();
  expect(complaints.filter((text) => !text.includes('status of 4'))).toEqual([]);
});
