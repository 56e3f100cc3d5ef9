// look_at_page.js BROWSER PAGE PICTURES: the page learns in a browser without window, which is spoken to through a
// pipe; its elements are read and used, and it is drawn as wide as a desk's screen and a phone's.
'use strict';
const {spawn} = require('child_process');
const fs = require('fs'), os = require('os'), path = require('path');
const [browser, page, pictures] = process.argv.slice(2);
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'rapt-page-'));
const child = spawn(browser, ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe',
  `--user-data-dir=${profile}`, 'about:blank'], {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});

let last = 0, text = '';
const waiting = new Map(), complaints = [];
child.stdio[4].on('data', data => {
  text += data;
  for (let end; (end = text.indexOf('\0')) >= 0; text = text.slice(end + 1)) {
    const message = JSON.parse(text.slice(0, end));
    if (message.method === 'Runtime.exceptionThrown') complaints.push(JSON.stringify(message.params.exceptionDetails));
    if (message.method === 'Network.requestWillBeSent') complaints.push(`asks for ${message.params.request.url}`);
    if (waiting.has(message.id)) waiting.get(message.id)(message);
  }
});

let session;
function call(method, params = {}) {
  const id = ++last;
  child.stdio[3].write(JSON.stringify({id, method, params, sessionId: session}) + '\0');
  return new Promise((good, bad) => waiting.set(id, message => message.error
    ? bad(new Error(`${method}: ${message.error.message}`)) : good(message.result)));
}

const evaluate = async code => (await call('Runtime.evaluate', {expression: code})).result.value;
const sleep = ms => new Promise(done => setTimeout(done, ms));
const expect = (good, what) => { if (!good) throw new Error(what); };

async function until(code, what) {
  for (let i = 0; i < 600; i++) {
    if (await evaluate(code)) return;
    await sleep(100);
  }
  throw new Error(`not within a minute: ${what}`);
}

async function draw(width, height, name) {
  const is_phone = width < 600, deviceScaleFactor = is_phone ? 2 : 1;
  await call('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor, mobile: is_phone});
  await sleep(500);
  expect(await evaluate('document.documentElement.scrollWidth') <= width, `the page is wider than ${width} points`);
  const {data} = await call('Page.captureScreenshot', {captureBeyondViewport: false});
  fs.writeFileSync(path.join(pictures, name), Buffer.from(data, 'base64'));
}

const of = id => `document.getElementById('${id}').textContent`;
const change = (id, value, event) => evaluate(
  `{ const e = document.getElementById('${id}'); e.value = '${value}'; e.dispatchEvent(new Event('${event}')); }`);

async function look() {
  const {targetInfos} = await call('Target.getTargets');
  const {targetId} = targetInfos.find(target => target.type === 'page');
  session = (await call('Target.attachToTarget', {targetId, flatten: true})).sessionId;
  await call('Runtime.enable');
  await call('Page.enable');
  await call('Page.navigate', {url: 'file://' + path.resolve(page)});
  await until(`typeof losses === 'object' && step > 10`, 'ten steps');
  await call('Network.enable');
  await draw(1000, 780, 'page-begin.png');
  await until(`step > 700 && losses.at(-1) < 0.1`, 'a loss below 0.1');
  await until(`${of('answer')} === 'dednetta'`, 'attended is turned around');
  expect(await evaluate(`losses[0]`) > 2.5, 'the loss begins at that of random guesses');
  expect(/^(9\d|100) %$/.test(await evaluate(of('share'))), 'nine of ten new words are right');
  await change('word', 'gradient', 'input');
  expect(await evaluate(of('answer')) === 'tneidarg', 'a word that is typed is turned around');
  await evaluate(`document.getElementById('pause').click()`);
  const step = await evaluate('step');
  await sleep(300);
  expect(await evaluate('step') === step, 'a pause is one');
  await draw(1000, 780, 'page.png');
  await draw(390, 844, 'page-phone.png');
  await change('task', '1', 'change');
  await until(`step > 5 && step < ${step}`, 'another task begins anew');
  expect(await evaluate(of('error')) === '', 'no error');
  expect(complaints.length === 0, complaints.join('\n'));
  console.log(`the page turned new words around after ${step} steps`);
}

look().then(() => 0, error => (console.error(`FAILED: ${error.message}`), 1)).then(status => {
  child.on('exit', () => {
    fs.rmSync(profile, {recursive: true, force: true, maxRetries: 5});
    process.exit(status);
  });
  child.kill();
});
