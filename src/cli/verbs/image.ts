// cli/verbs/image.ts: `ags image`: the images that sandboxes are based on.
import { spawn } from 'node:child_process';
import { planImageInside } from '../../images/devcontainer-engine-images.ts';
import { IMAGE, WORDS } from '../../protocol/config/words.ts';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { visible } from '../../lib/sanitize.ts';
import { formatDuration, readableSize } from '../../lib/units.ts';
import { shortId } from '../../sandbox/spec/image.ts';
import type { BuildOptions, Built } from '../../images/build.ts';
import { openImages, type Images } from '../../images/images.ts';
import { insideDevContainer, INSIDE } from '../../images/devcontainer/inside.ts';
import { agentNamed } from '../agent-name.ts';
import { age, cut, table } from '../terminal/format.ts';
import { createPaint } from '../terminal/colour.ts';
import { inProject } from '../run-options.ts';
import { refuseSurplus } from '../parse.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'build, pull, list and remove images for sandboxes',
  usage: 'image {build|pull|list|rm} [base|project|name...] [options]',
  takes: 'any',
  about:
    'With "image:" or "dockerfile:" in the configuration, or --image, a sandbox has the programs of an image instead of those of this machine; that needs a container backend. "build" builds the image of the project, or, if it has none, the base image of ags: common tools, Node, and the agents you name. Build steps reach only hosts that rules allow, through the gateway. "pull" lets the engine fetch an image over its own network.',
  examples: [
    'ags image build',
    'ags image build base --agent claude,codex',
    'ags image build base --from packages',
    'ags image pull debian:12',
    'ags image list',
    'ags image rm ags-base',
  ],
  options: {
    agent: { type: 'string', multiple: true, value: 'name,...', about: 'build base: agents to install in the image' },
    from: {
      type: 'string',
      value: 'image',
      about: 'build base: the image to build on, or "packages" (Debian packages through mmdebstrap)',
    },
    'no-cache': { type: 'boolean', about: 'build: repeat every step' },
    pull: { type: 'boolean', about: 'build: pull the image it builds on again' },
    backend: { type: 'string', value: 'docker|podman', about: 'the engine that has the images' },
    project: { type: 'string', value: 'directory', about: 'use this directory instead of the current one' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run(args, ctx) {
    const [word = 'list', ...names] = args.positionals;
    if (word === 'list') refuseSurplus('image list', names, { ...verb, takes: 0 });
    if (insideDevContainer(ctx.host)) return imageInside(word, names, ctx);
    const images = await openImages(
      inProject(args, ctx),
      typeof args.values['backend'] === 'string' ? args.values['backend'] : null,
    );
    switch (word) {
      case 'build':
        return build(images, names, args, ctx);
      case 'pull':
        return pull(images, names, args, ctx);
      case 'list':
        return list(images, args, ctx);
      case 'rm':
        return remove(images, names, args, ctx);
      default:
        throw new AgsError('usage.invalid', `ags image has no "${visible(word)}".`, { hint: 'See: ags image --help' });
    }
  },
};
export default verb;

async function build(images: Images, names: readonly string[], args: Arguments, ctx: Context): Promise<number> {
  const { values } = args;
  const [what] = names;
  if (names.length > 1 || (what !== undefined && what !== 'base' && what !== 'project'))
    throw new AgsError(
      'usage.invalid',
      `ags image build takes "base" or "project", not "${visible(names.join(' '))}".`,
    );
  const from = values['from'];
  if (typeof from === 'string' && !IMAGE.test(from))
    throw new AgsError('usage.invalid', `--from needs ${WORDS.image}.`);
  const agents = ((values['agent'] as string[] | undefined) ?? []).flatMap((text) => text.split(',')).map(agentNamed);
  const ofBase = agents.length > 0 || from !== undefined;
  const began = ctx.now().getTime();
  const options: BuildOptions = {
    noCache: values['no-cache'] === true,
    pull: values['pull'] === true,
    say: (text) => void ctx.stderr.write(`${visible(text)}\n`),
    onStep: ({ at, of, text }) =>
      void ctx.stderr.write(`${elapsed(ctx, began).padStart(6)}  ${at}/${of}  ${cut(text, 100)}\n`),
  };
  const built = await images.build(
    what ?? (ofBase ? 'base' : 'either'),
    { agents, from: typeof from === 'string' ? from : null },
    options,
  );
  report(built, elapsed(ctx, began), args, ctx);
  return EXIT.done;
}

function report({ image, already }: Built, time: string, { values }: Arguments, ctx: Context): void {
  const { reference, id, bytes } = image;
  if (values['json'] === true) {
    ctx.stdout.write(`${JSON.stringify({ reference, id, bytes, already }, null, 2)}\n`);
    return;
  }
  const facts = `${shortId(id)}, ${readableSize(bytes)}`;
  ctx.stdout.write(
    already ? `${reference} is already up to date (${facts}).\n` : `${reference} is ready (${facts}, ${time}).\n`,
  );
}

function elapsed(ctx: Context, began: number): string {
  return formatDuration(Math.round((ctx.now().getTime() - began) / 1000));
}

async function pull(images: Images, names: readonly string[], args: Arguments, ctx: Context): Promise<number> {
  for (const name of some(names, 'pull', 'debian:12')) {
    if (!IMAGE.test(name)) throw new AgsError('usage.invalid', `"${visible(name)}" is not the name of an image.`);
    const began = ctx.now().getTime();
    const image = await images.pull(name, (text) => void ctx.stderr.write(`${visible(text)}\n`));
    report({ image, already: false }, elapsed(ctx, began), args, ctx);
  }
  return EXIT.done;
}

async function list(images: Images, { values }: Arguments, ctx: Context): Promise<number> {
  const rows = await images.list();
  if (values['json'] === true) {
    const document = rows.map(({ reference, id, what, bytes, project, agents }) => ({
      reference,
      id,
      what,
      bytes,
      project,
      agents,
    }));
    ctx.stdout.write(`${JSON.stringify({ images: document }, null, 2)}\n`);
    return EXIT.done;
  }
  if (rows.length === 0) {
    ctx.stderr.write('There is no image of ags yet. To build one: ags image build\n');
    return EXIT.done;
  }
  const paint = createPaint(ctx.colour);
  const head = ['IMAGE', 'ID', 'WHAT', 'SIZE', 'AGE', 'OF'].map((text) => ({
    text,
    paint: (word: string) => paint('bold', word),
  }));
  ctx.stdout.write(
    table([
      head,
      ...rows.map((row) => [
        visible(row.reference),
        shortId(row.id),
        visible(row.what),
        readableSize(row.bytes),
        age(ctx.now().getTime() - row.createdAtMs),
        visible(row.project ?? row.agents ?? ''),
      ]),
    ]),
  );
  return EXIT.done;
}

async function remove(images: Images, names: readonly string[], args: Arguments, ctx: Context): Promise<number> {
  const removed: string[] = [];
  for (const name of some(names, 'rm', 'ags-base')) {
    await images.remove(name);
    removed.push(name);
    if (args.values['json'] !== true) ctx.stdout.write(`Removed ${visible(name)}.\n`);
  }
  if (args.values['json'] === true) ctx.stdout.write(`${JSON.stringify({ removed }, null, 2)}\n`);
  return EXIT.done;
}

function some(names: readonly string[], word: string, example: string): readonly string[] {
  if (names.length > 0) return names;
  throw new AgsError('usage.invalid', 'Which image?', { hint: `For example: ags image ${word} ${example}` });
}

const REBUILD = 'devcontainer up --workspace-folder . --remove-existing-container';

async function imageInside(word: string, names: readonly string[], ctx: Context): Promise<number> {
  if (word === 'list')
    ctx.stdout.write(`This dev container is built from ${INSIDE.settings}/Dockerfile, outside, with: ${REBUILD}\n`);
  const argv = planImageInside(ctx.host, word, names);
  if (argv !== null) return docker(argv);
  if (word === 'list') return EXIT.done;
  throw new AgsError('backend.unavailable', 'There is no engine in this dev container: its image is built outside.', {
    hint: `Change .devcontainer/Dockerfile, then outside: ${REBUILD}\nTo add an engine: ags devcontainer init --docker --force`,
  });
}

/** Runs in the same terminal; ags exits with the same code. */
function docker([program = '', ...args]: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    spawn(program, args, { stdio: 'inherit' })
      .on('error', (cause) =>
        reject(
          new AgsError('backend.unavailable', `${visible(program)} is not in this dev container.`, {
            hint: `Add it to .devcontainer/Dockerfile, then outside: ${REBUILD}`,
            cause,
          }),
        ),
      )
      .on('close', (code) => resolve(code ?? 1));
  });
}
