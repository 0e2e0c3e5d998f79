// Uploads a file in parts, and continues after a lost connection.
const MEBIBYTE = 1024 * 1024;
const MAX_PART_BYTES = 8 * MEBIBYTE;
const MIN_PART_BYTES = MEBIBYTE / 2;
const MAX_DELAY_MS = 30_000;
const POLL_MS = 1000;
const POLLS_BETWEEN_REQUESTS = 60;
/** The speed is an average over this time. */
const SPEED_SECONDS = 10;

const PLATFORMS = {
  p_windows: /win(dows|32|64)?([^a-z]|$)|\.(exe|msi)$/i,
  p_linux: /linux|\.(appimage|deb|rpm)$/i,
  p_osx: /mac|osx|darwin|\.(dmg|pkg)$/i,
  p_android: /android|\.apk$/i,
};

const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'];

function sizeOf(bytes) {
  const unit = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  const value = bytes / 1000 ** unit;
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${UNITS[unit]}`;
}

function timeOf(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/** An error that repeating doesn't fix. */
class UploadError extends Error {}

class FileUpload {
  constructor(form) {
    this.form = form;
    this.input = form.querySelector('input[type=file]');
    this.cancelButton = form.querySelector('[data-cancel]');
    this.progress = form.querySelector('[data-progress]');
    this.status = form.querySelector('[data-status]');
    this.problem = form.querySelector('[data-problem]');
    form.hidden = false;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.run();
    });
    this.input.addEventListener('change', () => this.guessPlatforms());
    this.cancelButton.addEventListener('click', () => (this.cancelling = this.cancel()));
    window.addEventListener('online', () => this.wake?.());
    window.addEventListener('beforeunload', (event) => this.sending && event.preventDefault());
    this.acceptDrops(form.querySelector('.drop'));
  }

  acceptDrops(area) {
    const over = (is) => area.classList.toggle('over', is);
    // A file that misses the area must not replace the page.
    for (const name of ['dragover', 'drop'])
      document.addEventListener(name, (event) => event.preventDefault());
    area.addEventListener('dragover', () => over(true));
    area.addEventListener('dragleave', () => over(false));
    area.addEventListener('drop', ({ dataTransfer }) => {
      over(false);
      if (this.sending || dataTransfer.files.length === 0) return;
      if (dataTransfer.files.length > 1) return this.show('Drop one file at a time.');
      this.input.files = dataTransfer.files;
      this.guessPlatforms();
    });
  }

  guessPlatforms() {
    this.show('');
    const [file] = this.input.files;
    const boxes = [...this.form.querySelectorAll('[name^=p_]')];
    if (!file || boxes.some((box) => box.checked)) return;
    for (const box of boxes) box.checked = PLATFORMS[box.name].test(file.name);
  }

  show(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = problem === '';
  }

  /** The fields of the form without its file, which is sent in parts. */
  fields(more = {}) {
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(this.form))
      if (typeof value === 'string') fields.set(name, value);
    for (const [name, value] of Object.entries(more)) fields.set(name, value);
    return fields;
  }

  async run() {
    const [file] = this.input.files;
    if (!file || this.sending) return;
    this.show('');
    if (file.size > Number(this.form.dataset.maxBytes))
      return this.show(`The file has ${sizeOf(file.size)}, more than this store accepts.`);
    this.sending = true;
    await this.cancelling;
    this.file = file;
    this.cancelled = false;
    const fields = this.fields({ filename: file.name, size: String(file.size) });
    this.setSending(true);
    try {
      await (this.opening = this.open(fields));
      await this.send();
      await this.finish();
    } catch (error) {
      if (this.cancelled) return;
      this.setSending(false);
      this.show(error.message);
    }
  }

  setSending(sending) {
    this.sending = sending;
    for (const field of this.form.querySelectorAll(
      'input:not([type=hidden]), button:not([data-cancel]), select',
    ))
      field.disabled = sending;
    this.cancelButton.hidden = !sending;
    this.progress.hidden = !sending;
    if (sending) {
      this.samples = [];
      this.say('Starting …');
      this.cancelButton.focus();
    }
  }

  say(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  async cancel() {
    this.cancelled = true;
    this.request?.abort();
    this.wake?.();
    this.setSending(false);
    this.input.focus();
    // A requested upload exists only after the response.
    await this.opening?.catch(() => undefined);
    const { id } = this;
    if (id === undefined) return;
    this.id = undefined;
    await this.post(`${this.form.dataset.start}/${id}/discard`).catch(() => undefined);
  }

  /** Continues the unfinished upload of a file with this name and size, or starts another one. */
  async open(fields) {
    const { name, size } = this.file;
    const unfinished = [...this.form.querySelectorAll('[data-unfinished]')].find(
      ({ dataset }) => dataset.filename === name && Number(dataset.size) === size,
    );
    if (unfinished) {
      this.id = unfinished.dataset.unfinished;
      ({ path: this.path } = await this.patiently(() => this.get(`${this.form.dataset.start}/${this.id}`)));
      return;
    }
    ({ id: this.id, path: this.path } = await this.patiently(() =>
      this.post(this.form.dataset.start, fields),
    ));
  }

  async send() {
    const { size } = this.file;
    let partBytes = MAX_PART_BYTES;
    let received = await this.patiently(() => this.put(`bytes */${size}`));
    while (received < size) {
      const start = received;
      const end = Math.min(start + partBytes, size);
      received = await this.patiently(async (isRetry) => {
        // What arrived of a part that was cut is kept.
        if (isRetry) return this.put(`bytes */${size}`);
        try {
          return await this.put(`bytes ${start}-${end - 1}/${size}`, this.file.slice(start, end), start);
        } catch (error) {
          // A proxy accepts less at a time.
          if (error.status !== 413 || partBytes <= MIN_PART_BYTES) throw error;
          partBytes /= 2;
          return start;
        }
      });
    }
    this.report(size);
  }

  /** Sends a part, or asks for the state; returns the bytes that are stored. */
  put(range, body, start = 0) {
    return new Promise((resolve, reject) => {
      const request = (this.request = new XMLHttpRequest());
      request.open('PUT', this.path);
      request.setRequestHeader('Content-Range', range);
      request.upload.addEventListener('progress', ({ loaded }) => body && this.report(start + loaded));
      request.addEventListener('load', () => {
        const { status } = request;
        const [, last] = /^bytes=0-(\d+)$/.exec(request.getResponseHeader('Range') ?? '') ?? [];
        if (status === 308) return resolve(last === undefined ? 0 : Number(last) + 1);
        if (status === 200 || status === 409) return resolve(this.file.size);
        reject(failureOf(status, request.responseText));
      });
      request.addEventListener('error', () => reject(new Error('The connection was lost.')));
      request.addEventListener('abort', () => reject(new UploadError('Cancelled')));
      request.send(body);
    });
  }

  report(received) {
    const { size } = this.file;
    const now = performance.now() / 1000;
    this.samples = [...this.samples.filter(([at]) => now - at < SPEED_SECONDS), [now, received]];
    const [[since, before]] = this.samples;
    const speed = now > since ? (received - before) / (now - since) : 0;
    const bar = this.progress.querySelector('progress');
    bar.value = received / size;
    // Screen readers read each change of the text, so it changes once a second at most.
    if (this.saidAt !== undefined && now - this.saidAt < 1 && received < size) return;
    this.saidAt = now;
    const left = speed > 0 && received < size ? `, ${timeOf((size - received) / speed)} left` : '';
    this.say(`${sizeOf(received)} of ${sizeOf(size)}${left}`);
  }

  /** Waits until the service has stored the complete file. */
  async finish() {
    this.cancelButton.hidden = true;
    this.say('Storing the file …');
    const path = `${this.form.dataset.start}/${this.id}`;
    let status = await this.patiently(() => this.post(`${path}/complete`));
    for (let polls = 1; status.state !== 'stored'; polls++) {
      if (status.state === 'failed') throw new UploadError(status.error);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      // A process of the service that was stopped is followed by the one that gets this request.
      const isAbandoned = status.state === 'receiving' || polls % POLLS_BETWEEN_REQUESTS === 0;
      status = await this.patiently(() => (isAbandoned ? this.post(`${path}/complete`) : this.get(path)));
    }
    this.sending = false;
    window.location.assign(`${this.form.dataset.files}#file-${status.upload_id}`);
    // A fragment alone doesn't load the page again.
    if (window.location.pathname === this.form.dataset.files) window.location.reload();
  }

  /** Repeats work that fails because of the network or the load of the service. */
  async patiently(work) {
    for (let attempt = 0; ; attempt++) {
      if (this.cancelled) throw new UploadError('Cancelled');
      try {
        return await work(attempt > 0);
      } catch (error) {
        if (error instanceof UploadError || this.cancelled) throw error;
        const delay = Math.min(1000 * 2 ** Math.min(attempt, 10), MAX_DELAY_MS);
        this.samples = [];
        this.say(`${error.message} Trying again in ${timeOf(delay / 1000)} …`);
        await new Promise((resolve) => {
          this.wake = resolve;
          setTimeout(resolve, delay);
        });
      }
    }
  }

  get(path) {
    return this.fetch(path, {});
  }

  post(path, fields = this.fields()) {
    return this.fetch(path, { method: 'POST', body: fields });
  }

  async fetch(path, options) {
    const response = await fetch(path, { ...options, headers: { accept: 'application/json' } }).catch(() => {
      throw new Error('The connection was lost.');
    });
    if (response.redirected)
      throw new UploadError('You are signed out. Sign in again in another tab, and try again.');
    if (!response.ok) throw failureOf(response.status, await response.text());
    return response.json();
  }
}

/** The error of a response; a rejected request isn't repeated. */
function failureOf(status, text) {
  const isTemporary = status === 429 || status === 408 || status >= 500;
  const error = isTemporary
    ? new Error('The service is busy.')
    : new UploadError(messageIn(text) ?? `The service responded with status ${status}.`);
  return Object.assign(error, { status });
}

function messageIn(text) {
  try {
    const message = JSON.parse(text).errors.join(' ');
    return message === 'invalid upload session' ? 'The upload has expired. Start it again.' : message;
  } catch {
    return undefined;
  }
}

for (const form of document.querySelectorAll('form.upload')) new FileUpload(form);
