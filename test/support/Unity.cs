// What docs/guides/ownership.md calls of Unity, over .NET, and a game that calls the example.
using System;
using System.Collections;
using System.IO;
using System.Net;
using System.Text.RegularExpressions;

namespace UnityEngine
{
    public class MonoBehaviour { }

    public static class JsonUtility
    {
        public static T FromJson<T>(string json)
        {
            var answer = Activator.CreateInstance<T>();
            foreach (var field in typeof(T).GetFields())
                field.SetValue(answer, Regex.IsMatch(json, "\"" + field.Name + "\":true"));
            return answer;
        }
    }
}

namespace UnityEngine.Networking
{
    public class DownloadHandler
    {
        public string text;
    }

    public sealed class UnityWebRequest : IDisposable
    {
        public enum Result { InProgress, Success, ConnectionError, ProtocolError }

        readonly HttpWebRequest request;
        public readonly DownloadHandler downloadHandler = new DownloadHandler();
        public Result result = Result.InProgress;
        public long responseCode;
        public int timeout { set { request.Timeout = value * 1000; } }

        UnityWebRequest(string url) { request = (HttpWebRequest)WebRequest.Create(url); }
        public static UnityWebRequest Get(string url) { return new UnityWebRequest(url); }
        public void SetRequestHeader(string name, string value) { request.Headers[name] = value; }
        public void Dispose() { request.Abort(); }

        public object SendWebRequest()
        {
            try { Read(request.GetResponse(), Result.Success); }
            catch (WebException failure)
            {
                if (failure.Response == null) result = Result.ConnectionError;
                else Read(failure.Response, Result.ProtocolError);
            }
            return null;
        }

        void Read(WebResponse answer, Result kind)
        {
            result = kind;
            responseCode = (long)((HttpWebResponse)answer).StatusCode;
            using (var reader = new StreamReader(answer.GetResponseStream())) downloadHandler.text = reader.ReadToEnd();
        }
    }
}

static class Game
{
    static void Main()
    {
        var api = Environment.GetEnvironmentVariable("GAMEWHARF_URL");
        var token = Environment.GetEnvironmentVariable("PLAYER_TOKEN");
        Ask(Ownership.Check(api, 1, token, Print));
        Ask(Ownership.Check(api, 2, token, Print));
        Ask(Ownership.Check(api, 1, "made.up.token", Print));
    }

    static void Ask(IEnumerator steps) { while (steps.MoveNext()) { } }
    static void Print(bool? owns, string reason) { Console.WriteLine("{0} {1}", owns, reason); }
}
